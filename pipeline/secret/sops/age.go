// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"bytes"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"
)

// Sizes of age-encryption.org/v1.
const (
	fileKeySize      = 16
	payloadNonceSize = 16
	armorColumns     = 64
)

// ageFile returns a small plaintext as an armored file of age (age-encryption.org/v1) for one recipient. All of its
// bytes that age generates at random come from derive, which returns size bytes for a purpose.
func ageFile(to Recipient, plaintext []byte, derive func(purpose string, size int) ([]byte, error)) (string, error) {
	fileKey, err := derive("file key", fileKeySize)
	if err != nil {
		return "", err
	}
	seed, err := derive("ephemeral key", chacha20poly1305.KeySize)
	if err != nil {
		return "", err
	}
	nonce, err := derive("nonce", payloadNonceSize)
	if err != nil {
		return "", err
	}
	share, body, err := wrapFileKey(to, seed, fileKey)
	if err != nil {
		return "", err
	}
	encode := base64.RawStdEncoding.EncodeToString
	header := "age-encryption.org/v1\n-> X25519 " + encode(share) + "\n" + encode(body) + "\n---"
	macKey, err := hkdf.Key(sha256.New, fileKey, nil, "header", sha256.Size)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, macKey)
	mac.Write([]byte(header))
	streamKey, err := hkdf.Key(sha256.New, fileKey, nonce, "payload", chacha20poly1305.KeySize)
	if err != nil {
		return "", err
	}
	// The first chunk, which is also the last one: eleven counter bytes, and one that marks the last chunk.
	chunk := make([]byte, chacha20poly1305.NonceSize)
	chunk[len(chunk)-1] = 1
	sealed, err := sealChaCha(streamKey, chunk, plaintext)
	if err != nil {
		return "", err
	}
	return armorAgeFile([]byte(header+" "+encode(mac.Sum(nil))+"\n"), nonce, sealed), nil
}

// wrapFileKey encrypts the key of a file for a recipient with an ephemeral key, and returns the ephemeral share too.
func wrapFileKey(to Recipient, seed, fileKey []byte) (share, body []byte, err error) {
	ephemeral, err := ecdh.X25519().NewPrivateKey(seed)
	if err != nil {
		return nil, nil, err
	}
	shared, err := ephemeral.ECDH(to.key)
	if err != nil {
		return nil, nil, fmt.Errorf("%s is no recipient that can be encrypted for: %w", to, err)
	}
	share = ephemeral.PublicKey().Bytes()
	key, err := hkdf.Key(sha256.New, shared, append(bytes.Clone(share), to.key.Bytes()...),
		"age-encryption.org/v1/X25519", chacha20poly1305.KeySize)
	if err != nil {
		return nil, nil, err
	}
	body, err = sealChaCha(key, make([]byte, chacha20poly1305.NonceSize), fileKey)
	return share, body, err
}

func sealChaCha(key, nonce, plaintext []byte) ([]byte, error) {
	aead, err := chacha20poly1305.New(key)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nonce, plaintext, nil), nil
}

// armorAgeFile writes a file as text, which ends with a line break.
func armorAgeFile(parts ...[]byte) string {
	text := base64.StdEncoding.EncodeToString(bytes.Join(parts, nil))
	out := "-----BEGIN AGE ENCRYPTED FILE-----\n"
	for len(text) > armorColumns {
		out, text = out+text[:armorColumns]+"\n", text[armorColumns:]
	}
	return out + text + "\n-----END AGE ENCRYPTED FILE-----\n"
}
