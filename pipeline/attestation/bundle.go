// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package attestation

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// PayloadType is the media type of in-toto statements in DSSE envelopes.
const PayloadType = "application/vnd.in-toto+json"

// BundleMediaType is that of Sigstore bundles (sigstore/protobuf-specs v0.5, protos/sigstore_bundle.proto).
const BundleMediaType = BundleTypePrefix + ".v0.3+json"

// BundleTypePrefix begins the media types of all versions of Sigstore bundles.
const BundleTypePrefix = "application/vnd.dev.sigstore.bundle"

// Bundle is a Sigstore bundle with a DSSE envelope, as cosign attest-blob --bundle writes it with a key: without a certificate and
// without an entry of a transparency log.
type Bundle struct {
	MediaType string       `json:"mediaType"`
	Material  keyMaterial  `json:"verificationMaterial"`
	Envelope  dsseEnvelope `json:"dsseEnvelope"`
}

// keyMaterial names the key. Prerig does not trust the name: a reader has its own keys.
type keyMaterial struct {
	PublicKey struct {
		Hint string `json:"hint"`
	} `json:"publicKey"`
}

type dsseEnvelope struct {
	Payload     []byte          `json:"payload"`
	PayloadType string          `json:"payloadType"`
	Signatures  []dsseSignature `json:"signatures"`
}

type dsseSignature struct {
	Sig []byte `json:"sig"`
}

// ParseBundle reads a bundle whose payload is an in-toto statement. It verifies no signature.
func ParseBundle(text []byte) (*Bundle, error) {
	var b Bundle
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	if b.Envelope.PayloadType != PayloadType {
		return nil, fmt.Errorf("reading the bundle: its payload is %q, but must be %s", b.Envelope.PayloadType, PayloadType)
	}
	return &b, nil
}

// Payload returns the statement as JSON.
func (b *Bundle) Payload() []byte { return b.Envelope.Payload }

// Signatures returns the signatures, each of Signed.
func (b *Bundle) Signatures() [][]byte {
	var out [][]byte
	for _, s := range b.Envelope.Signatures {
		out = append(out, s.Sig)
	}
	return out
}

// Signed returns the bytes that the signatures are of: the type and the payload with their lengths (PAE in protocol.md of DSSE v1.0.2).
func (b *Bundle) Signed() []byte {
	e := &b.Envelope
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(e.PayloadType), e.PayloadType, len(e.Payload), e.Payload)
}

// IsSignedBy reports whether one of the keys made one of the signatures.
func (b *Bundle) IsSignedBy(keys []crypto.PublicKey) bool {
	content := b.Signed()
	for _, signature := range b.Signatures() {
		for _, key := range keys {
			if HasSigned(key, content, signature) {
				return true
			}
		}
	}
	return false
}

// Sign returns the statement in a bundle, as one line of JSON. The result depends only on the key and the statement (RFC 6979), so that
// a retry writes the same bytes.
func Sign(key *ecdsa.PrivateKey, statement Statement) ([]byte, error) {
	payload, err := json.Marshal(statement)
	if err != nil {
		return nil, fmt.Errorf("signing the statement: %w", err)
	}
	b := Bundle{MediaType: BundleMediaType, Envelope: dsseEnvelope{Payload: payload, PayloadType: PayloadType}}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("signing the statement: %w", err)
	}
	hint := sha256.Sum256(der)
	b.Material.PublicKey.Hint = base64.StdEncoding.EncodeToString(hint[:])
	sum := sha256.Sum256(b.Signed())
	signature, err := key.Sign(nil, sum[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("signing the statement: %w", err)
	}
	b.Envelope.Signatures = []dsseSignature{{signature}}
	text, err := json.Marshal(b)
	return append(text, '\n'), err
}

// ErrUntrusted is the cause of an error about a statement that none of the keys signed.
var ErrUntrusted = errors.New("none of the given keys signed it")

// Open reads a statement from a bundle, and returns ErrUntrusted if none of the keys signed it.
func Open(text []byte, keys []crypto.PublicKey) (*Statement, error) {
	b, err := ParseBundle(text)
	if err != nil {
		return nil, err
	}
	if !b.IsSignedBy(keys) {
		return nil, ErrUntrusted
	}
	var s Statement
	if err := json.Unmarshal(b.Payload(), &s); err != nil {
		return nil, fmt.Errorf("reading the statement: %w", err)
	}
	if s.Type != statementType || s.PredicateType != PredicateType {
		return nil, fmt.Errorf("reading the statement: it is a %q with a predicate %q, but must have %s", s.Type, s.PredicateType, PredicateType)
	}
	return &s, nil
}
