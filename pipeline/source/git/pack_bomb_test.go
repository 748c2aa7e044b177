// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// TestADeltaBombIsNotUnpacked: each of its objects is within the bounds, and all of them together are gigabytes.
func TestADeltaBombIsNotUnpacked(t *testing.T) {
	// A tenth of the usual, as inflating takes its time.
	const size = 6 << 20
	limits := DefaultLimits()
	limits.UnpackedBytes, limits.ObjectBytes = limits.UnpackedBytes/16, limits.ObjectBytes/8
	for name, fill := range map[string]func(p *gittest.Pack){
		"deltas": func(p *gittest.Pack) {
			p.AddBlob(t, make([]byte, size))
			for i := range 2000 {
				p.AddDelta(t, size, binary.BigEndian.AppendUint32(nil, uint32(i)))
			}
		},
		"files of zeros": func(p *gittest.Pack) {
			for i := range 20 {
				p.AddBlob(t, append(make([]byte, size), byte(i)))
			}
		},
		"deltas that are large themselves": func(p *gittest.Pack) {
			p.AddBlob(t, []byte("a"))
			for range 20 { // of instructions that add nothing to what they make
				p.AddRawDelta(t, make([]byte, size))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := mirrorIn(t, t.TempDir())
			m.limits = limits
			pack := &gittest.Pack{}
			fill(pack)
			var limit *tree.LimitError
			if err := m.ingestPack(t.Context(), "test", bytes.NewReader(pack.Finish())); !errors.As(err, &limit) || limit.Limit != limits.UnpackedBytes {
				t.Errorf("got %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(m.dir, "objects", "*", "*")); len(left) != 0 {
				t.Errorf("it leaves %v behind", left)
			}
		})
	}
}

// TestUnpackingEndsWithItsContext: what is within the bounds may still take long.
func TestUnpackingEndsWithItsContext(t *testing.T) {
	m := mirrorIn(t, t.TempDir())
	pack := &gittest.Pack{}
	const size = 1 << 20
	pack.AddBlob(t, make([]byte, size))
	for i := range 100 {
		pack.AddDelta(t, size, binary.BigEndian.AppendUint32(nil, uint32(i)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	content := bytes.NewReader(pack.Finish())
	err := m.ingestPack(ctx, "test", readerFunc(func(p []byte) (int, error) {
		n, err := content.Read(p)
		if content.Len() == 0 {
			cancel() // while it is unpacked
		}
		return n, err
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := content.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	if err := m.ingestPack(t.Context(), "test", content); err != nil {
		t.Errorf("in full: %v", err)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
