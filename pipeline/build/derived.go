// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"fmt"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/derive"
	"github.com/prerig/prerig/pipeline/secret"
)

// seedKey is the key of the secrets that derived.secretRef names.
const seedKey = "seed"

// deriveKeys sets the keys in a request that the values of a pipeline's charts are derived from, if they are
// derived. The renderer never has the seed, and so can derive no values for other releases. The releases of the
// charts of kustomizations, and which objects are releases, are unknown at this point: their keys are for the
// pipeline.
func (b *Builder) deriveKeys(ctx context.Context, p *v1alpha1.RenderPipeline, request *render.Request) (err error) {
	spec := p.Spec.Build
	ofPipeline := []string{"pipeline", p.Key()}
	if helm := spec.Helm; helm != nil && helm.Impure == v1alpha1.ImpureDerived {
		request.DerivedKey, err = b.deriveKey(ctx, p, helm.Derived, "release", helm.Namespace, helm.ReleaseName)
	} else if charts := spec.HelmCharts; charts != nil && charts.Impure == v1alpha1.ImpureDerived {
		request.DerivedKey, err = b.deriveKey(ctx, p, charts.Derived, ofPipeline...)
	}
	if releases := spec.Releases; err == nil && releases != nil && releases.Impure == v1alpha1.ImpureDerived {
		request.ReleasesKey, err = b.deriveKey(ctx, p, releases.Derived, ofPipeline...)
	}
	return err
}

// deriveAnything has values derived from a publicly known seed. It is for renders that only find the charts they
// need and whose output is discarded, so that locking charts does not need the seed.
func deriveAnything(request *render.Request) error {
	key, err := derive.NewKey(make([]byte, derive.MinSeed), "discover")
	request.DerivedKey, request.ReleasesKey = key, key
	return err
}

// deriveKey returns the key of a purpose.
func (b *Builder) deriveKey(ctx context.Context, p *v1alpha1.RenderPipeline, derived *v1alpha1.HelmDerived, purpose ...string) (*derive.Key, error) {
	if derived == nil {
		return nil, nil // the renderer reports that the seed is missing
	}
	ref := derived.SecretRef
	keys, err := secret.Read(ctx, b.Secrets, p.Metadata.Namespace, &ref, secret.Purpose{})
	if err != nil {
		return nil, &FetchError{fmt.Errorf("deriving the values of charts: %w", err)}
	}
	seed := bytes.TrimSpace(keys[seedKey])
	if len(seed) == 0 {
		return nil, &FetchError{fmt.Errorf("deriving the values of charts: the secret %s has no key %s; openssl rand -hex 32 makes one", ref.Name, seedKey)}
	}
	key, err := derive.NewKey(seed, purpose...)
	if err != nil {
		return nil, &FetchError{fmt.Errorf("deriving the values of charts from the secret %s: %w", ref.Name, err)}
	}
	return key, nil
}
