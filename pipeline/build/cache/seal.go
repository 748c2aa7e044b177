// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

var errNoRoom = errors.New("there is no room on the disk")

// format is the first line of a file. Another version of what follows has another one.
const format = "prerig build 1\n"

// maxContent bounds what is unpacked. A render yields less.
const maxContent = 1 << 30

var (
	// NewWriter fails only for invalid options.
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxContent))
)

// packWithDigest packs a content with a digest of itself and its key.
func packWithDigest(slot, variant string, content []byte) []byte {
	packed := encoder.EncodeAll(content, nil)
	sum := sealDigest(slot, variant, packed)
	return bytes.Join([][]byte{[]byte(format), sum[:], packed}, nil)
}

// unpackSealedContent unpacks what seal has packed for this key.
func unpackSealedContent(slot, variant string, text []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(text, []byte(format))
	if !ok || len(rest) < sha256.Size {
		return nil, errors.New("it is cut off, or of another version")
	}
	sum, packed := rest[:sha256.Size], rest[sha256.Size:]
	if want := sealDigest(slot, variant, packed); !bytes.Equal(sum, want[:]) {
		return nil, errors.New("its digest is another one")
	}
	return decoder.DecodeAll(packed, nil)
}

func sealDigest(slot, variant string, packed []byte) [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n", slot, variant)
	h.Write(packed)
	return [sha256.Size]byte(h.Sum(nil))
}
