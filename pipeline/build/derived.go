// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"fmt"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render/helmchart/derive"
	"github.com/prerig/prerig/pipeline/secret"
)

// seedKey is the key of the secret that helm.derived.secretRef names.
const seedKey = "seed"

// derivedKey returns what the values of a pipeline's charts are derived from, nil where they are not. The renderer never has the seed,
// and so can derive nothing for other releases. What releases the charts of kustomizations are is not known here: their key is for
// the pipeline.
func (b *Builder) derivedKey(ctx context.Context, p *v1alpha1.RenderPipeline) (*derive.Key, error) {
	spec := p.Spec.Build
	var derived *v1alpha1.HelmDerived
	var parts []string
	switch {
	case spec.Helm != nil && spec.Helm.Impure == v1alpha1.ImpureDerived:
		derived, parts = spec.Helm.Derived, []string{"release", spec.Helm.Namespace, spec.Helm.ReleaseName}
	case spec.HelmCharts != nil && spec.HelmCharts.Impure == v1alpha1.ImpureDerived:
		derived, parts = spec.HelmCharts.Derived, []string{"pipeline", p.Key()}
	}
	if derived == nil {
		return nil, nil
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
	key, err := derive.NewKey(seed, parts...)
	if err != nil {
		return nil, &FetchError{fmt.Errorf("deriving the values of charts from the secret %s: %w", ref.Name, err)}
	}
	return key, nil
}
