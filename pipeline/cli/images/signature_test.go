// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/payload"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/attestation"
)

// cosigner signs with sigstore's library, as cosign does with a key.
type cosigner struct {
	signer signature.Signer
	public string
}

func newCosigner(t *testing.T, private crypto.PrivateKey, hash crypto.Hash) cosigner {
	t.Helper()
	s, err := signature.LoadSigner(private, hash)
	check(t, err)
	public, err := s.PublicKey()
	check(t, err)
	text, err := cryptoutils.MarshalPublicKeyToPEM(public)
	check(t, err)
	return cosigner{s, string(text)}
}

func ecdsaKey(t *testing.T, curve elliptic.Curve) crypto.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	check(t, err)
	return key
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c cosigner) sign(t *testing.T, content []byte) []byte {
	t.Helper()
	sig, err := c.signer.SignMessage(bytes.NewReader(content))
	check(t, err)
	return sig
}

// simple stores a signature of about under the tag of image, as cosign does before version 3; they are the same but in a forgery.
func (c cosigner) simple(t *testing.T, image, about name.Digest) {
	t.Helper()
	content, err := payload.Cosign{Image: about}.MarshalJSON()
	check(t, err)
	signatures := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	signatures, err = mutate.Append(signatures, mutate.Addendum{
		Layer: static.NewLayer(content, simpleSigningType), MediaType: simpleSigningType,
		Annotations: map[string]string{signatureAnnotation: base64.StdEncoding.EncodeToString(c.sign(t, content))},
	})
	check(t, err)
	check(t, remote.Write(image.Context().Tag(strings.Replace(image.DigestStr(), ":", "-", 1)+".sig"), signatures))
}

// bundle stores a Sigstore bundle that refers to the image, as cosign does from version 3 on.
func (c cosigner) bundle(t *testing.T, image, about name.Digest, predicate string) {
	t.Helper()
	subject, err := remote.Head(image)
	check(t, err)
	algorithm, hex, _ := strings.Cut(about.DigestStr(), ":")
	statement, err := json.Marshal(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": predicate, "predicate": map[string]any{},
		"subject": []any{map[string]any{"digest": map[string]string{algorithm: hex}}},
	})
	check(t, err)
	pae := fmt.Sprintf("DSSEv1 %d %s %d %s", len(attestation.PayloadType), attestation.PayloadType, len(statement), statement)
	text, err := json.Marshal(map[string]any{
		"mediaType":            "application/vnd.dev.sigstore.bundle.v0.3+json",
		"verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": "a"}},
		"dsseEnvelope": map[string]any{"payload": statement, "payloadType": attestation.PayloadType,
			"signatures": []any{map[string]any{"sig": c.sign(t, []byte(pae))}}},
	})
	check(t, err)
	const media = "application/vnd.dev.sigstore.bundle.v0.3+json"
	artifact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), media)
	artifact, err = mutate.Append(artifact, mutate.Addendum{Layer: static.NewLayer(text, media), MediaType: media})
	check(t, err)
	artifact, ok := mutate.Subject(artifact, *subject).(v1.Image)
	if !ok {
		t.Fatal("the artifact is no image")
	}
	digest, err := artifact.Digest()
	check(t, err)
	check(t, remote.Write(image.Context().Digest(digest.String()), artifact))
}

// signatureCase is an image that somebody signs, and the keys that are asked for.
type signatureCase struct {
	sign func(name.Digest)
	keys []string
	want string // part of the error; empty for none
}

// signedBy is an image that is signed as it is asked for.
func signedBy(c cosigner, sign func(cosigner, name.Digest)) signatureCase {
	return signatureCase{sign: func(d name.Digest) { sign(c, d) }, keys: []string{c.public}}
}

// TestSignatures makes locks of images that are signed in every way, and of some that only look so, and verifies such locks.
func TestSignatures(t *testing.T) {
	t.Parallel()
	host := inProcess(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	check(t, err)
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	check(t, err)
	ours := newCosigner(t, ecdsaKey(t, elliptic.P256()), crypto.SHA256)
	theirs := newCosigner(t, ecdsaKey(t, elliptic.P256()), crypto.SHA256)
	other, err := name.NewDigest(host + "/acme/other@sha256:" + strings.Repeat("a", 64))
	check(t, err)
	for what, tc := range map[string]signatureCase{
		"signed":              {func(d name.Digest) { ours.simple(t, d, d) }, []string{ours.public}, ""},
		"by one of two keys":  {func(d name.Digest) { ours.simple(t, d, d) }, []string{theirs.public, ours.public}, ""},
		"by another key":      {func(d name.Digest) { theirs.simple(t, d, d) }, []string{ours.public}, "no signature of "},
		"not at all":          {func(name.Digest) {}, []string{ours.public}, "is not signed"},
		"for another image":   {func(d name.Digest) { ours.simple(t, d, other) }, []string{ours.public}, "no signature of "},
		"bundle":              {func(d name.Digest) { ours.bundle(t, d, d, signPredicate) }, []string{ours.public}, ""},
		"bundle, another key": {func(d name.Digest) { theirs.bundle(t, d, d, signPredicate) }, []string{ours.public}, "no signature of "},
		"bundle, another":     {func(d name.Digest) { ours.bundle(t, d, other, signPredicate) }, []string{ours.public}, "no signature of "},
		"an attestation":      {func(d name.Digest) { ours.bundle(t, d, d, "https://slsa.dev/provenance/v1") }, []string{ours.public}, "is not signed"},
		"P-384":               signedBy(newCosigner(t, ecdsaKey(t, elliptic.P384()), crypto.SHA384), func(c cosigner, d name.Digest) { c.simple(t, d, d) }),
		"RSA":                 signedBy(newCosigner(t, rsaKey, crypto.SHA256), func(c cosigner, d name.Digest) { c.simple(t, d, d) }),
		"Ed25519":             signedBy(newCosigner(t, edKey, crypto.SHA256), func(c cosigner, d name.Digest) { c.bundle(t, d, d, signPredicate) }),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			repository := host + "/acme/" + strings.NewReplacer(" ", "-", ",", "").Replace(strings.ToLower(what))
			image := repository + ":1"
			d, err := name.NewDigest(repository + "@" + pushIndex(t, image, int64(len(what)), "linux/amd64"))
			check(t, err)
			tc.sign(d)
			o := quick()
			o.Verify = []v1alpha1.ImageVerification{{Images: host + "/acme/*", Keys: tc.keys}}
			for _, asked := range []string{image, image + "@" + d.DigestStr()} {
				lock, err := Pin(t.Context(), "images", []string{asked}, o)
				if tc.want == "" && err != nil || tc.want != "" && (err == nil || lock != nil || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("%s: %v, want %q", asked, err, tc.want)
				}
			}
			checkVerified(t, o, v1alpha1.LockedImage{Image: image, Digest: d.DigestStr()}, tc.want)
		})
	}
}

// checkVerified holds that a lock with the image is signed, or why it is not.
func checkVerified(t *testing.T, o Options, locked v1alpha1.LockedImage, want string) {
	t.Helper()
	got, err := Verify(t.Context(), v1alpha1.NewImageLock("images", []v1alpha1.LockedImage{locked}), o)
	check(t, err)
	s := got[0]
	if want == "" && (s.State != Current || !s.Signed) || want != "" && (s.State != Unsigned || s.Signed || !strings.Contains(s.Message, want)) {
		t.Errorf("verified: %+v, want %q", s, want)
	}
}

// TestVerifySignaturesOfTheLock: what is locked has to be signed, not what the tag names now; what nothing is asked of is as it was.
func TestVerifySignaturesOfTheLock(t *testing.T) {
	t.Parallel()
	host := inProcess(t)
	ours := newCosigner(t, ecdsaKey(t, elliptic.P256()), crypto.SHA256)
	var locked []v1alpha1.LockedImage
	for i, repository := range []string{"ours/moved", "ours/forged", "ours/lost", "free/tool"} {
		image := host + "/" + repository + ":1"
		locked = append(locked, v1alpha1.LockedImage{Image: image, Digest: pushImage(t, image, int64(i+1), "linux/amd64")})
		d, err := name.NewDigest(host + "/" + repository + "@" + locked[i].Digest)
		check(t, err)
		if repository == "ours/moved" {
			ours.simple(t, d, d)
			pushImage(t, image, 50, "linux/amd64") // nobody has signed this one
		}
	}
	forged, err := name.NewDigest(host + "/ours/forged@" + pushImage(t, host+"/ours/forged:2", 60, "linux/amd64"))
	check(t, err)
	ours.simple(t, forged, forged)
	remove(t, host+"/ours/lost:1")
	remove(t, host+"/ours/lost@"+locked[2].Digest)
	o := quick()
	o.Verify = []v1alpha1.ImageVerification{{Images: host + "/ours/*", Keys: []string{ours.public}}, {Images: "quay.io/**", Keys: []string{ours.public}}}
	var unused []string
	o.Unused = func(pattern string) { unused = append(unused, pattern) }
	got, err := Verify(t.Context(), v1alpha1.NewImageLock("images", locked), o)
	check(t, err)
	var states []string
	for _, s := range got {
		states = append(states, fmt.Sprintf("%s %s %v", strings.TrimPrefix(s.Image, host+"/"), s.State, s.Signed))
	}
	if text := strings.Join(states, ", "); text != "free/tool:1 current false, ours/forged:1 unsigned false, ours/lost:1 lost false, ours/moved:1 moved true" {
		t.Errorf("states %s", text)
	}
	if len(unused) != 1 || unused[0] != "quay.io/**" {
		t.Errorf("unused %v", unused)
	}
}

// TestSignatureRules is about keys that are none, and patterns that match nothing.
func TestSignatureRules(t *testing.T) {
	t.Parallel()
	host := inProcess(t)
	pushIndex(t, host+"/a:1", 1, "linux/amd64")
	ours := newCosigner(t, ecdsaKey(t, elliptic.P256()), crypto.SHA256)
	o := quick()
	o.Verify = []v1alpha1.ImageVerification{{Images: "docker.io/istio/*", Keys: []string{ours.public}}}
	var unused []string
	o.Unused = func(pattern string) { unused = append(unused, pattern) }
	if _, err := Pin(t.Context(), "images", []string{host + "/a:1"}, o); err != nil || len(unused) != 1 || unused[0] != "docker.io/istio/*" {
		t.Errorf("%v, unused %v", err, unused)
	}
	for _, key := range []string{"", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", ours.public + ours.public} {
		o.Verify[0].Keys = []string{key}
		if _, err := Pin(t.Context(), "images", []string{host + "/a:1"}, o); err == nil || !strings.Contains(err.Error(), "key 1 of docker.io/istio/*") {
			t.Errorf("key %q: %v", key, err)
		}
	}
}
