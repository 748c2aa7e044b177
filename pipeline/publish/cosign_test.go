// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/payload"

	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// cosignKey makes a key as cosign does, with sigstore's library: a secret, and the public key.
func cosignKey(t *testing.T) (secret map[string][]byte, public []byte) {
	t.Helper()
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte("open")))
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"cosign.key": private, "cosign.password": []byte("open")}, public
}

func signer(t *testing.T, secret map[string][]byte) *publish.ArtifactSigner {
	t.Helper()
	s, err := publish.NewArtifactSigner(secret)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// signatures counts the signatures of a digest that a public key verifies, with sigstore's library, and all there are.
func signatures(t *testing.T, r *oci.Registry, digest string, public []byte) (good, all int) {
	t.Helper()
	key, err := cryptoutils.UnmarshalPEMToPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(r.Repository.Tag(strings.Replace(digest, ":", "-", 1) + ".sig"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, descriptor := range manifest.Layers {
		layer, err := image.LayerByDigest(descriptor.Digest)
		if err != nil {
			t.Fatal(err)
		}
		content, err := layer.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		var simple payload.Cosign
		if err := json.Unmarshal(text, &simple); err != nil || simple.Image.DigestStr() != digest || simple.Image.Context().Name() != r.Repository.Name() {
			t.Errorf("the signature is about %s, %v:\n%s", simple.Image, err, text)
		}
		sig, err := base64.StdEncoding.DecodeString(descriptor.Annotations["dev.cosignproject.cosign/signature"])
		if err != nil || descriptor.MediaType != "application/vnd.dev.cosign.simplesigning.v1+json" {
			t.Errorf("a layer of type %s, %v", descriptor.MediaType, err)
		}
		if all++; verifier.VerifySignature(bytes.NewReader(sig), bytes.NewReader(text)) == nil {
			good++
		}
	}
	return good, all
}

func TestSignedArtifact(t *testing.T) {
	var writes []string // what is pushed, in order
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") {
			writes = append(writes, filepath.Base(r.URL.Path))
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	r, err := oci.Connect("oci://"+host+"/rendered/shop", nil, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	secret, public := cosignKey(t)
	push := func(a *publish.Artifact, value string) publish.ArtifactResult {
		t.Helper()
		result, err := a.Publish(ctx, change(t, "apps/shop", "shop", configMap("a", value)))
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	a := &publish.Artifact{Registry: r, Tags: []string{"latest"}, Signer: signer(t, secret)}
	first := push(a, "1")
	if good, all := signatures(t, r, first.Digest, public); good != 1 || all != 1 {
		t.Errorf("%d of %d signatures are good", good, all)
	}
	// The tag is the last to be written: at no time does it point to what is not signed.
	if want := []string{first.Digest, strings.Replace(first.Digest, ":", "-", 1) + ".sig", "latest"}; !slices.Equal(writes, want) {
		t.Errorf("written were %q, want %q", writes, want)
	}
	writes = nil
	if again := push(a, "1"); again.Changed || len(writes) > 0 {
		t.Errorf("what is signed was signed again: %+v, %q", again, writes)
	}
	// Another key signs beside the first, also what is published already.
	other, otherPublic := cosignKey(t)
	a.Signer = signer(t, other)
	if second := push(a, "1"); !second.Changed || second.Digest != first.Digest {
		t.Errorf("got %+v", second)
	}
	for _, key := range [][]byte{public, otherPublic} {
		if good, all := signatures(t, r, first.Digest, key); good != 1 || all != 2 {
			t.Errorf("%d of %d signatures are good", good, all)
		}
	}
	// A wrong password, and keys that are none, say so without the key.
	for name, bad := range map[string]map[string][]byte{
		"password is wrong":      {"cosign.key": secret["cosign.key"], "cosign.password": []byte("shut")},
		"has no cosign.key":      {"identity": []byte("x")},
		"is a \"PUBLIC KEY\"":    {"cosign.key": public},
		"is not an ECDSA key":    {"cosign.key": pkcs8(t)},
		"as cosign writes keys":  {"cosign.key": pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED COSIGN PRIVATE KEY", Bytes: []byte("x")})},
		"too much memory":        {"cosign.key": changed(t, secret["cosign.key"], `"N":65536`, `"N":6553600`), "cosign.password": []byte("open")},
		"in another way than co": {"cosign.key": changed(t, secret["cosign.key"], `"scrypt"`, `"argon2"`), "cosign.password": []byte("open")},
	} {
		if _, err := publish.NewArtifactSigner(bad); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "shut") {
			t.Errorf("got %v, want %q", err, name)
		}
	}
	cosignVerify(t, host+"/rendered/shop:latest", public)
}

// cosignVerify asks the cosign command that PRERIG_COSIGN names. It is not looked for, as it calls its servers even where it
// is told not to need them.
func cosignVerify(t *testing.T, image string, public []byte) {
	t.Helper()
	cosign := os.Getenv("PRERIG_COSIGN")
	if cosign == "" {
		return
	}
	key := filepath.Join(t.TempDir(), "cosign.pub")
	if err := os.WriteFile(key, public, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(cosign, "verify", "--key", key, "--private-infrastructure", "--allow-http-registry", image)
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
}

func pkcs8(t *testing.T) []byte {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// changed replaces a part of an encrypted key's description.
func changed(t *testing.T, key []byte, before, after string) []byte {
	t.Helper()
	block, _ := pem.Decode(key)
	if !bytes.Contains(block.Bytes, []byte(before)) {
		t.Fatalf("the key says nothing of %s: %s", before, block.Bytes)
	}
	block.Bytes = bytes.Replace(block.Bytes, []byte(before), []byte(after), 1)
	return pem.EncodeToMemory(block)
}

// A key that is not encrypted is taken too: the secret guards it.
func TestSignWithAPlainKey(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	signer(t, map[string][]byte{"cosign.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})})
}
