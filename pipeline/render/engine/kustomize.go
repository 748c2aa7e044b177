// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// noNetwork replaces every connection that a library would open.
type noNetwork struct{}

// RoundTrip implements http.RoundTripper.
func (noNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("loading %s: a render uses no network", withoutCredentials(r.URL.String()))
}

// kustomizeBuild builds kustomizations.
type kustomizeBuild struct {
	request   *render.Request
	files     tree.Reader // of charts
	injection *injection
	response  *render.Response
	schema    bool              // a kustomization names a schema, which kustomize keeps
	marked    map[string]string // kinds and names of functions to their own apiVersion
	layers    func([]byte) []byte
}

func newKustomizeBuild(request *render.Request, files tree.Reader, injection *injection, response *render.Response) *kustomizeBuild {
	return &kustomizeBuild{request: request, files: files, injection: injection, response: response, marked: map[string]string{}}
}

// setsSchema reports whether a kustomization has set a schema, if there was a build.
func (b *kustomizeBuild) setsSchema() bool { return b != nil && b.schema }

// render builds as the kustomize command does by default, with all plugins disabled.
func (b *kustomizeBuild) render(ctx context.Context, at string) ([]fn.Item, error) {
	files := b.newCheckedTree(b.files)
	objects, err := b.runLeniently(ctx, files, at, b.loadRestrictions())
	if err != nil {
		return nil, err
	}
	b.response.Results = append(b.response.Results, files.leftOut.results()...)
	if !b.request.Review {
		mistakes, err := silentMistakes(files, at, objects.Resources())
		if err != nil {
			return nil, err
		}
		b.response.Results = append(b.response.Results, mistakes...)
	}
	return b.resourceItems(files, objects.Resources())
}

// needsBases notes the remote bases and files that a kustomization of a tree needs and that are not there yet. It reports whether there are
// some: then the build is to be repeated with them.
func (b *kustomizeBuild) needsBases(ctx context.Context, files tree.Reader, at string) (bool, error) {
	wanted, err := reference.FindUnfetched(ctx, files, *b.request, render.CleanPath(at))
	if err != nil {
		return false, err
	}
	for _, one := range wanted {
		if !slices.ContainsFunc(b.response.WantedBases, func(known render.WantedBase) bool { return known.Name == one.Name }) {
			b.response.WantedBases = append(b.response.WantedBases, one)
		}
	}
	return len(wanted) > 0, nil
}

// loadRestrictions returns what kustomizations may load. In any case the tree has no file outside of the source.
func (b *kustomizeBuild) loadRestrictions() types.LoadRestrictions {
	if b.request.LoadRestrictor == v1alpha1.LoadRestrictionsNone {
		return types.LoadRestrictionsNone
	}
	return types.LoadRestrictionsRootOnly
}

// newCheckedTree returns files as kustomize is to see them.
func (b *kustomizeBuild) newCheckedTree(from tree.Reader) *checkedTree {
	files := newKustomizations(from, b.request.Bases)
	files.sources = b.request.Sources
	if b.request.Review {
		files.leftOut = newLeftOut(b.request.Functions)
	}
	return files
}

// run runs kustomize in a directory.
func (b *kustomizeBuild) run(ctx context.Context, files *checkedTree, at string, restrictions types.LoadRestrictions) (resmap.ResMap, error) {
	if err := installTransformer(newFunction(ctx, b)); err != nil {
		return nil, err
	}
	// Keys are written in many ways; so it counts, too, what kustomize made of them.
	defer func() { b.schema = b.schema || files.schema || schemaIsSet() }()
	if err := installHelmGenerator(func() resmap.GeneratorPlugin { return &helmGenerator{ctx: ctx, build: b, places: files.charts} }); err != nil {
		return nil, err
	}
	b.layers = files.restoreNames
	files.unrestricted = restrictions == types.LoadRestrictionsNone
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	options.PluginConfig = types.DisabledPluginConfig()
	options.LoadRestrictions = restrictions
	read := newReadMeter(b.request.Limits.Output)
	objects, err := krusty.MakeKustomizer(options).Run(kustomizeFS{files, read}, path.Join("/", at))
	if over := read.add(0); over != nil {
		return nil, over // kustomize takes an unreadable file for a directory or a URL
	}
	if files.refused != nil {
		return nil, errors.New(string(files.restoreNames([]byte(files.refused.Error()))))
	}
	if err != nil {
		return nil, explainKustomizeError(files, at, files.explainError(err))
	}
	for _, object := range objects.Resources() {
		if object.GetApiVersion() == "" {
			return nil, explainKustomizeError(files, at, fmt.Errorf("%s of %s %s", missingVersion, object.GetKind(), object.GetName()))
		}
	}
	return objects, nil
}

// resourceItems returns the documents of what kustomize has built.
func (b *kustomizeBuild) resourceItems(files *checkedTree, objects []*resource.Resource) ([]fn.Item, error) {
	texts, err := b.resourceTexts(files, objects)
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

// resourceTexts returns the text of each object that kustomize has built.
func (b *kustomizeBuild) resourceTexts(files *checkedTree, objects []*resource.Resource) (out []string, err error) {
	for _, object := range objects {
		if err := errors.Join(files.restoreOrigins(object), b.unmarkOrigin(object)); err != nil {
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

// renderTexts builds a kustomization of a tree to the text of each of its objects.
func (b *kustomizeBuild) renderTexts(ctx context.Context, from tree.Reader, at string) ([]string, error) {
	if wanting, err := b.needsBases(ctx, from, at); err != nil || wanting {
		return nil, err
	}
	files := b.newCheckedTree(from)
	objects, err := b.run(ctx, files, at, b.loadRestrictions())
	if err != nil {
		return nil, err
	}
	return b.resourceTexts(files, objects.Resources())
}
