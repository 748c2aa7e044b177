// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package attestation

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	_ "crypto/sha256" // the hashes that signatures are made with
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// ParsePublicKey reads one key in PEM format, as cosign generate-key-pair and cosign public-key write it.
func ParsePublicKey(text []byte) (crypto.PublicKey, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "PUBLIC KEY" {
		return nil, errors.New("it is not a public key in PEM format, such as cosign.pub")
	}
	if len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("it contains more than one key; list them one by one")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the public key: %w", err)
	}
	if !supportsKey(key) {
		return nil, fmt.Errorf("a key of type %T is not supported; use ECDSA, RSA or Ed25519", key)
	}
	return key, nil
}

// supportsKey reports whether signatures by a key can be verified: those that cosign makes and imports.
func supportsKey(key crypto.PublicKey) bool {
	switch key.(type) {
	case *ecdsa.PublicKey, *rsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// HasSigned reports whether a signature of the content is by the key. Cosign hashes with SHA-256, or as long as an elliptic curve is.
func HasSigned(key crypto.PublicKey, content, signature []byte) bool {
	if k, ok := key.(ed25519.PublicKey); ok {
		return ed25519.Verify(k, content, signature)
	}
	for _, h := range []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512} {
		hash := h.New()
		hash.Write(content)
		sum := hash.Sum(nil)
		switch k := key.(type) {
		case *ecdsa.PublicKey:
			if ecdsa.VerifyASN1(k, sum, signature) {
				return true
			}
		case *rsa.PublicKey:
			if rsa.VerifyPKCS1v15(k, h, sum, signature) == nil {
				return true
			}
		}
	}
	return false
}
