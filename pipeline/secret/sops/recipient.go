// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"crypto/ecdh"
	"errors"
	"fmt"
	"strings"
)

// Recipient is a public key of age, of the kind X25519.
type Recipient struct {
	text string
	key  *ecdh.PublicKey
}

// String returns the recipient as age-keygen prints it.
func (r Recipient) String() string { return r.text }

// recipientPrefix is the human-readable part of recipients (age-encryption.org/v1).
const recipientPrefix = "age"

// ParseRecipient reads a recipient as age-keygen prints it. An error does not quote what could be a private key.
func ParseRecipient(text string) (Recipient, error) {
	switch {
	case strings.HasPrefix(text, "AGE-SECRET-KEY-"):
		return Recipient{}, errors.New("this is a private key, which only the reader of the secrets may have; use the public key that age-keygen -y prints for it, and create a new pair if others have seen this key")
	case strings.HasPrefix(text, "ssh-"), strings.HasPrefix(text, "age1pq1"),
		strings.HasPrefix(text, "age1") && strings.Count(text, "1") > 1 && !isBech32(text[len("age1"):]):
		return Recipient{}, fmt.Errorf("%s is a recipient of a kind that is not supported; give one of the kind X25519, which age-keygen prints", text)
	}
	data, err := decodeBech32(recipientPrefix, text)
	if err != nil {
		return Recipient{}, fmt.Errorf("%q is no recipient of age, such as age1… that age-keygen prints: %w", text, err)
	}
	key, err := ecdh.X25519().NewPublicKey(data)
	if err != nil {
		return Recipient{}, fmt.Errorf("%q is no recipient of age: %w", text, err)
	}
	return Recipient{text, key}, nil
}

// bech32Letters are the digits of Bech32 (BIP 173).
const bech32Letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

func isBech32(text string) bool { return strings.Trim(text, bech32Letters) == "" }

// checksumLength is how many digits a text of Bech32 ends in that check it.
const checksumLength = 6

// decodeBech32 returns the bytes of a text of Bech32 in lower case.
func decodeBech32(prefix, text string) ([]byte, error) {
	digits, ok := strings.CutPrefix(text, prefix+"1")
	if !ok || len(digits) < checksumLength || !isBech32(digits) {
		return nil, fmt.Errorf("it does not consist of %s1 and letters and digits of Bech32", prefix)
	}
	values := make([]byte, 0, len(digits))
	for _, letter := range []byte(digits) {
		values = append(values, byte(strings.IndexByte(bech32Letters, letter)))
	}
	if bech32Checksum(prefix, values) != 1 {
		return nil, errors.New("its checksum is wrong: a letter is missing or mistyped")
	}
	var out []byte
	buffer, bits := 0, 0
	for _, value := range values[:len(values)-checksumLength] {
		buffer, bits = buffer<<5|int(value), bits+5
		if bits >= 8 {
			bits -= 8
			out = append(out, byte(buffer>>bits))
			buffer &= 1<<bits - 1
		}
	}
	if bits >= 5 || buffer != 0 {
		return nil, errors.New("it does not end where a byte does")
	}
	return out, nil
}

// bech32Checksum is the polynomial of BIP 173, 1 for what is right.
func bech32Checksum(prefix string, values []byte) uint32 {
	all := make([]byte, 0, 2*len(prefix)+1+len(values))
	for _, letter := range []byte(prefix) {
		all = append(all, letter>>5)
	}
	all = append(all, 0)
	for _, letter := range []byte(prefix) {
		all = append(all, letter&31)
	}
	sum := uint32(1)
	for _, value := range append(all, values...) {
		top := sum >> 25
		sum = sum&0x1ffffff<<5 ^ uint32(value)
		for i, generator := range []uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
			if top>>i&1 == 1 {
				sum ^= generator
			}
		}
	}
	return sum
}
