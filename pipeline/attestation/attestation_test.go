// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package attestation

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"testing"

	"github.com/sigstore/sigstore/pkg/signature"
	sigdsse "github.com/sigstore/sigstore/pkg/signature/dsse"
)

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signed(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	files := map[string][]byte{"shop/b.yaml": []byte("b"), "shop/a.yaml": []byte("a")}
	inputs := []Resource{{Name: "policy mesh.yaml", Digest: SHA256([]byte("p"))}}
	text, err := Sign(key, New(Files(files), Parameters{Pipeline: "apps/shop", Path: "shop"}, inputs, "v1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestSigstoreVerifiesStatements verifies the envelope with sigstore's library, which shares no code with this package.
func TestSigstoreVerifiesStatements(t *testing.T) {
	key := newKey(t)
	var bundle struct {
		Envelope json.RawMessage `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(signed(t, key), &bundle); err != nil {
		t.Fatal(err)
	}
	for name, public := range map[string]*ecdsa.PrivateKey{"the key": key, "another key": newKey(t)} {
		verifier, err := signature.LoadVerifier(public.Public(), crypto.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		err = sigdsse.WrapVerifier(verifier).VerifySignature(bytes.NewReader(bundle.Envelope), nil)
		if (err == nil) != (public == key) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOpenTrustsOnlyTheKeys changes every byte of a bundle, one at a time: none may lead to another statement.
func TestOpenTrustsOnlyTheKeys(t *testing.T) {
	key := newKey(t)
	text := signed(t, key)
	keys := []crypto.PublicKey{newKey(t).Public(), key.Public()}
	statement, err := Open(text, keys)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(statement)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(text, keys[:1]); !errors.Is(err, ErrUntrusted) {
		t.Errorf("with another key alone: %v", err)
	}
	refused := 0
	for i := range text {
		changed := bytes.Clone(text)
		changed[i] ^= 1
		other, err := Open(changed, keys)
		if err != nil {
			refused++
			continue
		}
		if got, _ := json.Marshal(other); !bytes.Equal(got, want) {
			t.Fatalf("with byte %d changed, the statement is %s", i, got)
		}
	}
	if refused < len(text)/2 {
		t.Errorf("%d of %d changed bundles were refused", refused, len(text))
	}
}

// TestSignIsRepeatable: a retry must write the same bytes.
func TestSignIsRepeatable(t *testing.T) {
	key := newKey(t)
	if !bytes.Equal(signed(t, key), signed(t, key)) {
		t.Error("two signatures of one statement differ")
	}
}
