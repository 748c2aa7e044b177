// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// rendered keeps the request, and fails.
type rendered struct{ request render.Request }

var errRendered = errors.New("nothing is rendered here")

// Render implements Renderer.
func (r *rendered) Render(_ context.Context, _ tree.Reader, request render.Request) (*render.Response, error) {
	r.request = request
	return nil, errRendered
}

// derivedPipeline is a pipeline of a release with derived values.
func derivedPipeline() *v1alpha1.RenderPipeline {
	p := &v1alpha1.RenderPipeline{}
	p.Metadata.Name, p.Metadata.Namespace = "web", "team"
	p.Spec.Build = v1alpha1.Build{Type: v1alpha1.BuildHelm, Helm: &v1alpha1.Helm{
		Chart: "chart", ReleaseName: "web", Namespace: "shop", Impure: v1alpha1.ImpureDerived,
		Derived: &v1alpha1.HelmDerived{SecretRef: meta.LocalObjectReference{Name: "seed"}},
	}}
	return p
}

// buildDerived builds a pipeline with a seed, and returns the request that the renderer gets.
func buildDerived(t *testing.T, p *v1alpha1.RenderPipeline, seed string) (*Built, render.Request, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "team/seed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "team/seed/seed"), []byte(seed), 0o600); err != nil {
		t.Fatal(err)
	}
	renderer := &rendered{}
	b := &Builder{Renderer: renderer, Limits: render.DefaultLimits(), Secrets: secret.Dir{Path: dir}}
	built, err := b.Build(t.Context(), p, tree.NewBuilder(tree.Limits{}).Build())
	return built, renderer.request, err
}

const seedCanary = "c4nary-seed-0123456789abcdef0123456789abcdef"

// TestDerivedKeys checks which pipelines have the same key, and that nothing of the seed is in what is kept or shown.
func TestDerivedKeys(t *testing.T) {
	checks := map[string]string{}
	key := func(name string, p *v1alpha1.RenderPipeline, seed string) {
		built, request, err := buildDerived(t, p, seed)
		derived, without := request.DerivedKey, request
		without.DerivedKey = nil
		if derived == nil {
			derived, without.ReleasesKey = request.ReleasesKey, nil
		}
		if !errors.Is(err, errRendered) || derived == nil {
			t.Fatalf("%s: %v", name, err)
		}
		checks[name] = derived.Check()
		text, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		shown := fmt.Sprintf("%s %+v %+v %v", text, request, built, built.Request)
		for _, canary := range []string{seed, string(derived.Bytes()), fmt.Sprintf("%x", derived.Bytes()), fmt.Sprint(derived.Bytes())} {
			if strings.Contains(shown, canary) {
				t.Errorf("%s: the seed or the key is in %s", name, shown)
			}
		}
		record := tree.NewView(tree.NewBuilder(tree.Limits{}).Build(), tree.Limits{}).Record()
		if render.Fingerprint(record, &request, "v1") == render.Fingerprint(record, &without, "v1") {
			t.Errorf("%s: the fingerprint does not depend on the key", name)
		}
	}
	key("first", derivedPipeline(), seedCanary)
	key("again", derivedPipeline(), seedCanary+"\n")
	key("seed", derivedPipeline(), seedCanary+"x")
	p := derivedPipeline()
	p.Metadata.Name = "other"
	key("pipeline", p, seedCanary)
	p.Spec.Build.Helm.ReleaseName = "other"
	key("release", p, seedCanary)
	p.Spec.Build.Helm.ReleaseName, p.Spec.Build.Helm.Namespace = "web", "other"
	key("namespace", p, seedCanary)
	derived := derivedPipeline().Spec.Build.Helm.Derived
	p.Spec.Build = v1alpha1.Build{HelmCharts: &v1alpha1.HelmCharts{Impure: v1alpha1.ImpureDerived, Derived: derived}}
	key("kustomization", p, seedCanary)
	p.Metadata.Name = "third"
	key("kustomization of another pipeline", p, seedCanary)
	p.Spec.Build = v1alpha1.Build{Releases: &v1alpha1.Releases{Impure: v1alpha1.ImpureDerived, Derived: derived}}
	key("releases", p, seedCanary)
	if checks["first"] != checks["again"] || checks["first"] != checks["pipeline"] {
		t.Error("the same release has another key")
	}
	if checks["releases"] != checks["kustomization of another pipeline"] {
		t.Error("a chart that moves from a kustomization into a HelmRelease has another key")
	}
	different := map[string]bool{}
	for _, check := range checks {
		different[check] = true
	}
	if len(different) != 6 {
		t.Errorf("%d keys: %v", len(different), checks)
	}
}

// TestDerivedKeysAreMissing checks that a seed that is not there is waited for, and that errors hold nothing of it.
func TestDerivedKeysAreMissing(t *testing.T) {
	other := derivedPipeline()
	other.Spec.Build.Helm.Derived.SecretRef.Name = "none"
	for want, test := range map[string]struct {
		p    *v1alpha1.RenderPipeline
		seed string
	}{
		"deriving the values of charts: reading secret none: there is no secret team/none":               {other, seedCanary},
		"deriving the values of charts: the secret seed has no key seed; openssl rand -hex 32 makes one": {derivedPipeline(), " \n"},
		"the seed has 7 bytes, and must have at least 32; openssl rand -hex 32 makes one":                {derivedPipeline(), "c4nary1"},
	} {
		_, _, err := buildDerived(t, test.p, test.seed)
		var fetch *FetchError
		if !errors.As(err, &fetch) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "c4nary") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	b := &Builder{Renderer: &rendered{}, Limits: render.DefaultLimits()}
	if _, err := b.Build(t.Context(), derivedPipeline(), tree.NewBuilder(tree.Limits{}).Build()); err == nil || !strings.Contains(err.Error(), "no secrets are configured") {
		t.Error(err)
	}
}
