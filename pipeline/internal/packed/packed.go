// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package packed writes values as compressed JSON, as they are stored.
package packed

import (
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Codec writes and reads values. It is safe for concurrent use.
type Codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// New returns a Codec that unpacks at most so many bytes of a value.
func New(most uint64) *Codec {
	// The only errors are those of invalid options.
	encoder, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	decoder, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(most))
	return &Codec{encoder, decoder}
}

// Encode packs a value.
func (c *Codec) Encode(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return c.encoder.EncodeAll(text, nil), nil
}

// Decode unpacks what Encode gave into a value.
func (c *Codec) Decode(data []byte, value any) error {
	text, err := c.decoder.DecodeAll(data, nil)
	if err == nil {
		err = json.Unmarshal(text, value)
	}
	if err != nil {
		return fmt.Errorf("reading what was stored: %w", err)
	}
	return nil
}
