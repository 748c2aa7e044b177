// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"encoding/base64"
	"fmt"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/blowfish" //nolint:staticcheck // it is what bcrypt is made of
)

// bcryptEncoding is base64 with the alphabet of crypt(3).
var bcryptEncoding = base64.NewEncoding("./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789").WithPadding(base64.NoPadding)

// Sizes of a hash of bcrypt.
const (
	bcryptSalt     = 16
	bcryptPassword = 72 // bytes, at most
	bcryptPasses   = 64
)

// Bcrypt returns the hash of a password with a salt of the stream, at the usual cost. golang.org/x/crypto/bcrypt, which checks such
// hashes, makes them with a salt of its own only.
func (s *Stream) Bcrypt(password string) (string, error) {
	if len(password) > bcryptPassword {
		return "", bcrypt.ErrPasswordTooLong
	}
	salt := s.Bytes(bcryptSalt)
	key := append([]byte(password), 0)
	state, err := blowfish.NewSaltedCipher(key, salt)
	if err != nil {
		return "", fmt.Errorf("hashing a password: %w", err)
	}
	for range 1 << bcrypt.DefaultCost {
		blowfish.ExpandKey(key, state)
		blowfish.ExpandKey(salt, state)
	}
	sum := []byte("OrpheanBeholderScryDoubt") // what the algorithm encrypts
	for at := 0; at < len(sum); at += blowfish.BlockSize {
		block := sum[at : at+blowfish.BlockSize]
		for range bcryptPasses {
			state.Encrypt(block, block)
		}
	}
	// Its last byte was left out by the first program, and is by all.
	return fmt.Sprintf("$2a$%02d$%s%s", bcrypt.DefaultCost, bcryptEncoding.EncodeToString(salt), bcryptEncoding.EncodeToString(sum[:len(sum)-1])), nil
}
