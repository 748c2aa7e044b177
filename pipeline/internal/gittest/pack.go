// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gittest

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"testing"
)

// Pack is a pack as gitformat-pack describes it, for packs that git would not make.
type Pack struct {
	content bytes.Buffer
	count   uint32
	first   int64 // where the first object begins
}

// Types of packed objects.
const (
	packedBlob        = 3
	packedOffsetDelta = 6
)

func (p *Pack) add(t *testing.T, kind byte, before, content []byte) {
	t.Helper()
	if p.count == 0 {
		p.content.WriteString("PACK\x00\x00\x00\x02\x00\x00\x00\x00")
		p.first = int64(p.content.Len())
	}
	p.count++
	head, rest := kind<<4|byte(len(content)&15), len(content)>>4
	for ; rest > 0; rest >>= 7 {
		p.content.WriteByte(head | 0x80)
		head = byte(rest & 0x7f)
	}
	p.content.WriteByte(head)
	p.content.Write(before)
	w := zlib.NewWriter(&p.content)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// AddBlob adds a file.
func (p *Pack) AddBlob(t *testing.T, content []byte) {
	t.Helper()
	p.add(t, packedBlob, nil, content)
}

// AddDelta adds a file that is the first one, which has a size, and up to 127 bytes more, as a delta of some tens of
// bytes.
func (p *Pack) AddDelta(t *testing.T, size int, more []byte) {
	t.Helper()
	delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(size)), uint64(size+len(more)))
	const most = 0xffffff
	for at := 0; at < size; at += most {
		n := min(most, size-at)
		delta = append(delta, 0xff, byte(at), byte(at>>8), byte(at>>16), byte(at>>24), byte(n), byte(n>>8), byte(n>>16))
	}
	p.AddRawDelta(t, append(append(delta, byte(len(more))), more...))
}

// AddRawDelta adds a delta against the first object, without validating it.
func (p *Pack) AddRawDelta(t *testing.T, delta []byte) {
	t.Helper()
	back := int64(p.content.Len()) - p.first
	offset := []byte{byte(back & 0x7f)}
	for back >>= 7; back > 0; back >>= 7 {
		back--
		offset = append([]byte{0x80 | byte(back&0x7f)}, offset...)
	}
	p.add(t, packedOffsetDelta, offset, delta)
}

// Finish returns the whole pack.
func (p *Pack) Finish() []byte {
	whole := bytes.Clone(p.content.Bytes())
	binary.BigEndian.PutUint32(whole[8:], p.count)
	sum := sha1.Sum(whole)
	return append(whole, sum[:]...)
}
