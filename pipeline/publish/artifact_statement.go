// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"crypto"
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/prerig/prerig/pipeline/attestation"
)

// Statements about artifacts, as cosign attest stores them since version 3 (its specs/BUNDLE_SPEC.md): an artifact with one layer, which is
// a Sigstore bundle, refers to the attested digest. Registries without the referrers API list it at a tag, sha256-HEX.

const (
	annotationContent   = "dev.sigstore.bundle.content"
	annotationPredicate = "dev.sigstore.bundle.predicateType"
	maxStatement        = 1 << 20 // bytes of a bundle
)

// attestImage ensures that the image has a statement of the attester's key about it, beside those of others. It reports whether it made
// one. An image that an earlier change published keeps the statement about that change.
func (a *Artifact) attestImage(ctx context.Context, image v1.Image, c Change) (bool, error) {
	subject, err := partial.Descriptor(image)
	if err != nil {
		return false, err
	}
	attested, err := a.hasStatement(ctx, subject.Digest)
	if err != nil {
		return false, fmt.Errorf("attesting %s: %w", subject.Digest, err)
	}
	if attested {
		return false, nil
	}
	about := attestation.Resource{Name: a.Registry.Repository.Name(), Digest: digestOf(subject.Digest.String())}
	bundle, err := a.Attester.signStatement(c, []attestation.Resource{about})
	if err != nil {
		return false, fmt.Errorf("attesting %s: %w", subject.Digest, err)
	}
	statement, err := bundleImage(bundle, *subject)
	if err != nil {
		return false, fmt.Errorf("attesting %s: %w", subject.Digest, err)
	}
	digest, err := statement.Digest()
	if err != nil {
		return false, fmt.Errorf("attesting %s: %w", subject.Digest, err)
	}
	at := a.Registry.Repository.Digest(digest.String())
	if err := remote.Write(at, statement, a.Registry.Options(remote.WithContext(ctx))...); err != nil {
		return false, fmt.Errorf("attesting %s: writing %s: %w", subject.Digest, at, err)
	}
	return true, nil
}

// bundleImage returns the artifact of a bundle that refers to a subject.
func bundleImage(bundle []byte, subject v1.Descriptor) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), attestation.BundleMediaType)
	image, err := mutate.Append(image, mutate.Addendum{
		Layer: static.NewLayer(bundle, attestation.BundleMediaType), MediaType: attestation.BundleMediaType,
	})
	if err != nil {
		return nil, err
	}
	annotated := mutate.Annotations(image, map[string]string{annotationContent: "dsse-envelope", annotationPredicate: attestation.PredicateType})
	refer := v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest}
	return mutate.Subject(annotated.(v1.Image), refer).(v1.Image), nil
}

// hasStatement looks for a statement about a digest by the attester's key.
func (a *Artifact) hasStatement(ctx context.Context, digest v1.Hash) (bool, error) {
	options := a.Registry.Options(remote.WithContext(ctx))
	index, err := remote.Referrers(a.Registry.Repository.Digest(digest.String()), options...)
	if err != nil {
		return false, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return false, err
	}
	bundles := 0
	for _, d := range manifest.Manifests {
		if !strings.HasPrefix(d.ArtifactType, attestation.BundleTypePrefix) {
			continue
		}
		if bundles++; bundles > maxSignatures {
			return false, fmt.Errorf("it has more than %d statements", maxSignatures)
		}
		image, err := remote.Image(a.Registry.Repository.Digest(d.Digest.String()), options...)
		if err != nil {
			return false, err
		}
		ours, err := a.Attester.isStatementAbout(image, digest)
		if ours || err != nil {
			return ours, err
		}
	}
	return false, nil
}

// isStatementAbout reports whether an artifact is a statement by this key about a digest.
func (s *ArtifactSigner) isStatementAbout(image v1.Image, digest v1.Hash) (bool, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return false, err
	}
	if len(manifest.Layers) != 1 || manifest.Layers[0].Size > maxStatement {
		return false, nil
	}
	text, err := contentOf(image, manifest.Layers[0].Digest, maxStatement)
	if err != nil {
		return false, err
	}
	statement, err := attestation.Open(text, []crypto.PublicKey{s.key.Public()})
	if err != nil {
		return false, nil // It is by another key, or of another type.
	}
	for _, subject := range statement.Subject {
		if subject.Digest[digest.Algorithm] == digest.Hex {
			return true, nil
		}
	}
	return false, nil
}
