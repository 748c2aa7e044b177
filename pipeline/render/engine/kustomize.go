// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// noNetwork replaces every connection that a library would open.
type noNetwork struct{}

// RoundTrip implements http.RoundTripper.
func (noNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("loading %s: a render uses no network", withoutCredentials(r.URL.String()))
}

// renderKustomize builds as the kustomize command does by default, with all plugins disabled.
func (w *renderWorker) renderKustomize(ctx context.Context, at string) ([]fn.Item, error) {
	texts, err := w.buildKustomization(ctx, w.files, at)
	if err != nil {
		return nil, err
	}
	var items []fn.Item
	for i, text := range texts {
		file, err := manifest.Parse("", []byte(text))
		if err != nil {
			return nil, err
		}
		for _, doc := range file.Docs {
			items = append(items, fn.Item{Doc: doc, Index: i})
		}
	}
	return items, nil
}

// buildKustomization builds a kustomization of a tree to the text of each of its objects.
func (w *renderWorker) buildKustomization(ctx context.Context, tree tree.Reader, at string) ([]string, error) {
	if err := installTransformer(newFunction(ctx, w)); err != nil {
		return nil, err
	}
	files := newKustomizations(tree, w.request.Bases)
	files.sources = w.request.Sources
	// Keys are written in many ways; so it counts, too, what kustomize made of them.
	defer func() { w.schema = w.schema || files.schema || schemaIsSet() }()
	if err := installHelmGenerator(func() resmap.GeneratorPlugin { return &helmGenerator{ctx: ctx, worker: w, places: files.charts} }); err != nil {
		return nil, err
	}
	w.layers = files.restoreNames
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	if w.request.LoadRestrictor == v1alpha1.LoadRestrictionsNone { // the tree still has no file outside of the source
		options.LoadRestrictions = types.LoadRestrictionsNone
	}
	options.PluginConfig = types.DisabledPluginConfig()
	objects, err := krusty.MakeKustomizer(options).Run(kustomizeFS{files}, path.Join("/", at))
	if files.refused != nil {
		return nil, errors.New(string(files.restoreNames([]byte(files.refused.Error()))))
	}
	if err != nil {
		return nil, files.explainError(err)
	}
	var out []string
	for _, object := range objects.Resources() {
		if err := errors.Join(files.restoreOrigins(object), w.unmarkOrigin(object)); err != nil {
			return nil, err
		}
		text, err := object.AsYAML()
		if err != nil {
			return nil, err
		}
		out = append(out, string(files.restoreNames(text)))
	}
	return out, nil
}
