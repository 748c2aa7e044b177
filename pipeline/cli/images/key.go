// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	_ "crypto/sha256" // the hashes that signatures are made with
	_ "crypto/sha512"
)

// supportsKey reports whether signatures by a key can be verified: those that cosign makes and imports.
func supportsKey(key crypto.PublicKey) bool {
	switch key.(type) {
	case *ecdsa.PublicKey, *rsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// hasSigned reports whether a signature of the content is by the key. Cosign hashes with SHA-256, or as long as an elliptic curve is.
func hasSigned(key crypto.PublicKey, content, signature []byte) bool {
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
