// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
)

// Key is the secret that values are derived from. Printing it does not reveal it.
type Key struct{ bytes [32]byte }

// MinSeed is the least length of a seed in bytes.
const MinSeed = 32

// NewKey derives a key from a seed for the purpose that the parts name. The key reveals neither the seed nor the
// keys of other parts.
func NewKey(seed []byte, parts ...string) (*Key, error) {
	if len(seed) < MinSeed {
		return nil, fmt.Errorf("the seed has %d bytes, and must have at least %d; openssl rand -hex 32 makes one", len(seed), MinSeed)
	}
	out, err := hkdf.Key(sha256.New, seed, nil, "prerig.dev/derived/v1"+string(joined(parts)), len(Key{}.bytes))
	if err != nil {
		return nil, fmt.Errorf("deriving a key: %w", err)
	}
	k := &Key{}
	copy(k.bytes[:], out)
	return k, nil
}

// KeyOf returns the key that Bytes returned.
func KeyOf(bytes []byte) (*Key, error) {
	k := &Key{}
	if copy(k.bytes[:], bytes) != len(bytes) || len(bytes) != len(k.bytes) {
		return nil, fmt.Errorf("a key has %d bytes, found %d", len(k.bytes), len(bytes))
	}
	return k, nil
}

// Bytes returns the key itself, for the process that derives values.
func (k *Key) Bytes() []byte { return k.bytes[:] }

// Format implements fmt.Formatter.
func (*Key) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, "[key]") }

// MarshalJSON implements json.Marshaler.
func (*Key) MarshalJSON() ([]byte, error) { return []byte("\"[key]\""), nil }

// Check returns a value that differs for every key and reveals no part of it.
func (k *Key) Check() string { return fmt.Sprintf("%x", k.sum([]string{"check"})[:16]) }

// Stream returns the bytes that belong to what the parts name.
func (k *Key) Stream(parts ...string) *Stream {
	// A key of 32 bytes is one of AES-256.
	block, err := aes.NewCipher(k.sum(append([]string{"stream"}, parts...)))
	if err != nil {
		panic(err)
	}
	return &Stream{cipher.NewCTR(block, make([]byte, aes.BlockSize))}
}

func (k *Key) sum(parts []string) []byte {
	mac := hmac.New(sha256.New, k.bytes[:])
	mac.Write(joined(parts))
	return mac.Sum(nil)
}

// joined encodes texts unambiguously: no other texts yield the same bytes.
func joined(parts []string) []byte {
	var out []byte
	for _, part := range parts {
		out = binary.BigEndian.AppendUint64(out, uint64(len(part)))
		out = append(out, part...)
	}
	return out
}

// Stream is an endless sequence of bytes: AES-256 in counter mode, over zeros. It is for one goroutine.
type Stream struct{ cipher.Stream }

// Bytes returns the next n bytes.
func (s *Stream) Bytes(n int) []byte {
	out := make([]byte, n)
	s.XORKeyStream(out, out)
	return out
}

// Below returns a number from 0 to n-1, all equally likely. n must be greater than 0.
func (s *Stream) Below(n uint64) uint64 {
	// What is beyond the last multiple of n would make small numbers more likely.
	limit := -n % n
	for {
		if value := binary.BigEndian.Uint64(s.Bytes(8)); value >= limit {
			return value % n
		}
	}
}

// Text returns characters of an alphabet.
func (s *Stream) Text(alphabet string, length int) string {
	out := make([]byte, max(length, 0))
	for i := range out {
		out[i] = alphabet[s.Below(uint64(len(alphabet)))]
	}
	return string(out)
}

// Shuffle puts characters into another order.
func (s *Stream) Shuffle(text []rune) {
	for i := len(text) - 1; i > 0; i-- {
		j := s.Below(uint64(i) + 1)
		text[i], text[j] = text[j], text[i]
	}
}
