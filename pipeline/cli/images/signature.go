// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/attestation"
)

// Signatures by a key, as cosign makes them and stores them beside an image (cosign's specs/SIGNATURE_SPEC.md and
// specs/BUNDLE_SPEC.md): for the digest sha256:abc the tag sha256-abc.sig has a layer for each signature; since version
// 3 cosign stores a bundle as an artifact that refers to the image. Transparency logs and certificates are not looked
// at.

const (
	simpleSigningType   = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation = "dev.cosignproject.cosign/signature"
	signPredicate       = "https://sigstore.dev/cosign/sign/v1"
	emptyConfigType     = "application/vnd.oci.empty.v1+json"
	maxSignatures       = 100
	maxSignature        = 1 << 20 // bytes of a payload or bundle
)

// signatureRule is what one entry of images.verify asks for.
type signatureRule struct {
	pattern string
	keys    []crypto.PublicKey
}

// signatureRules are those of a run, and which of them were needed.
type signatureRules struct {
	rules []signatureRule
	mu    sync.Mutex
	used  map[string]bool
}

func newSignatureRules(list []v1alpha1.ImageVerification) (*signatureRules, error) {
	out := &signatureRules{used: map[string]bool{}}
	for _, v := range list {
		r := signatureRule{pattern: v.Images}
		if !doublestar.ValidatePattern(v.Images) {
			return nil, fmt.Errorf("reading images.verify: invalid pattern %q", v.Images)
		}
		for i, text := range v.Keys {
			key, err := attestation.ParsePublicKey([]byte(text))
			if err != nil {
				return nil, fmt.Errorf("reading images.verify: key %d of %s: %w", i+1, v.Images, err)
			}
			r.keys = append(r.keys, key)
		}
		out.rules = append(out.rules, r)
	}
	return out, nil
}

// rulesFor returns the rules that are about the image, and notes that they were needed.
func (s *signatureRules) rulesFor(ref name.Reference) []signatureRule {
	repository := ref.Context().Name()
	if rest, ok := strings.CutPrefix(repository, name.DefaultRegistry+"/"); ok {
		repository = "docker.io/" + rest
	}
	var out []signatureRule
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if ok, err := doublestar.Match(r.pattern, repository); ok && err == nil {
			out = append(out, r)
			s.used[r.pattern] = true
		}
	}
	return out
}

// unmatchedPatterns returns the patterns that no image has matched.
func (s *signatureRules) unmatchedPatterns() []string {
	var out []string
	for _, r := range s.rules {
		if !s.used[r.pattern] {
			out = append(out, r.pattern)
		}
	}
	return out
}

// unsignedError means that a digest is not signed as required.
type unsignedError struct{ text string }

func (e *unsignedError) Error() string { return e.text }

// verifySignatures returns an *unsignedError if none of the keys of a rule about the image has signed the digest.
// asked reports whether a rule about the image exists.
func (c *registryClient) verifySignatures(ctx context.Context, ref name.Reference,
	digest string) (asked bool, err error) {
	rules := c.rules.rulesFor(ref)
	if len(rules) == 0 {
		return false, nil
	}
	signed, err := c.signedStatements(ctx, ref.Context().Digest(digest))
	if err != nil {
		return true, fmt.Errorf("reading the signatures of %s: %w", digest, explainRegistryError(ref, err))
	}
	for _, r := range rules {
		if !isSignedBy(signed, r.keys, digest) {
			if len(signed) == 0 {
				return true, &unsignedError{fmt.Sprintf("%s is not signed, and images.verify requires a signature of %s", digest, r.pattern)}
			}
			return true, &unsignedError{fmt.Sprintf("no signature of %s is by a key of images.verify for %s", digest, r.pattern)}
		}
	}
	return true, nil
}

// signedStatement is something that was signed.
type signedStatement struct {
	content   []byte // covered by the signature
	signature []byte
	digest    string // the image that it is about
}

func isSignedBy(signed []signedStatement, keys []crypto.PublicKey, digest string) bool {
	for _, s := range signed {
		for _, key := range keys {
			if s.digest == digest && attestation.HasSigned(key, s.content, s.signature) {
				return true
			}
		}
	}
	return false
}

// signedStatements returns a registry's signatures of a digest. None of them is verified yet.
func (c *registryClient) signedStatements(ctx context.Context, digest name.Digest) ([]signedStatement, error) {
	out, err := c.simpleSignatures(ctx, digest)
	if err != nil {
		return nil, err
	}
	index, err := remote.Referrers(digest, append(c.remote, remote.WithContext(ctx))...)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	read := 0
	for _, d := range manifest.Manifests {
		if !mayBeBundle(d.ArtifactType) {
			continue
		}
		if read++; len(out) >= maxSignatures || read > maxSignatures {
			return nil, fmt.Errorf("it has more than %d signatures", maxSignatures)
		}
		bundles, err := c.layersOfMediaType(ctx, digest.Context().Digest(d.Digest.String()), attestation.BundleTypePrefix)
		if err != nil {
			return nil, err
		}
		for _, b := range bundles {
			out = append(out, statementsOfBundle(b.content)...)
		}
	}
	return out, nil
}

// mayBeBundle reports whether an artifact of a type can be a bundle. In a registry without the API for referrers, the list that cosign
// 3.0.2 stores calls its bundles by the type of their empty config.
func mayBeBundle(artifactType string) bool {
	return strings.HasPrefix(artifactType, attestation.BundleTypePrefix) || artifactType == emptyConfigType || artifactType == ""
}

// simpleSignatures reads the tag that cosign stores signatures under before version 3.
func (c *registryClient) simpleSignatures(ctx context.Context, digest name.Digest) ([]signedStatement, error) {
	tag := digest.Context().Tag(strings.Replace(digest.DigestStr(), ":", "-", 1) + ".sig")
	layers, err := c.layersOfMediaType(ctx, tag, simpleSigningType)
	if notFound(err) {
		return nil, nil
	}
	var out []signedStatement
	for _, l := range layers {
		var payload struct {
			Critical struct {
				Image struct {
					Digest string `json:"docker-manifest-digest"`
				} `json:"image"`
				Type string `json:"type"`
			} `json:"critical"`
		}
		signature, err := base64.StdEncoding.DecodeString(l.annotations[signatureAnnotation])
		if err != nil || json.Unmarshal(l.content, &payload) != nil ||
			payload.Critical.Type != "cosign container image signature" {
			continue
		}
		out = append(out, signedStatement{l.content, signature, payload.Critical.Image.Digest})
	}
	return out, err
}

// layer is the content of a small layer.
type layer struct {
	content     []byte
	annotations map[string]string
}

// layersOfMediaType reads the layers of a type.
func (c *registryClient) layersOfMediaType(ctx context.Context, ref name.Reference, mediaType string) ([]layer, error) {
	desc, err := c.puller.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	image, err := desc.Image()
	if err != nil {
		return nil, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Layers) > maxSignatures {
		return nil, fmt.Errorf("%s has more than %d signatures", ref, maxSignatures)
	}
	var out []layer
	for _, d := range manifest.Layers {
		if !strings.HasPrefix(string(d.MediaType), mediaType) || d.Size > maxSignature {
			continue
		}
		content, err := readLayer(image, d.Digest)
		if err != nil {
			return nil, err
		}
		out = append(out, layer{content, d.Annotations})
	}
	return out, nil
}

func readLayer(image v1.Image, digest v1.Hash) ([]byte, error) {
	l, err := image.LayerByDigest(digest)
	if err != nil {
		return nil, err
	}
	r, err := l.Compressed() // the bytes as they are
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, maxSignature))
}

// statementsOfBundle reads a Sigstore bundle with a DSSE envelope around an in-toto statement that an image was signed;
// none from any other, such as an attestation about a build.
func statementsOfBundle(text []byte) []signedStatement {
	var statement struct {
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	bundle, err := attestation.ParseBundle(text)
	if err != nil || json.Unmarshal(bundle.Payload(), &statement) != nil || statement.PredicateType != signPredicate {
		return nil
	}
	var out []signedStatement
	for _, signature := range bundle.Signatures() {
		for _, subject := range statement.Subject {
			for algorithm, hex := range subject.Digest {
				out = append(out, signedStatement{bundle.Signed(), signature, algorithm + ":" + hex})
			}
		}
	}
	return out
}
