// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// renderWorker is one render.
type renderWorker struct {
	request  *render.Request
	files    tree.Reader
	out      *render.Connection
	response render.Response
	compiled *policyCache
	used     bool              // the process has rendered before
	schema   bool              // a kustomization names a schema, which kustomize keeps
	secret   bool              // what was built holds a Secret or a credential
	marked   map[string]string // kinds and names of functions to their own apiVersion
	layers   func([]byte) []byte
	written  *writtenObjects // with releases or the gate
	built    builtDocs       // with the gate
	units    map[int]string  // of the documents by their index, with Flux
	// lines are those of the documents before policies are applied, which change them.
	lines map[builtPlace]int
}

// runSafely turns a panic of a library into an error, as kustomize has some for odd input.
func (w *renderWorker) runSafely() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("building: the library gave up: %v", r)
		}
	}()
	return w.runRender(context.Background())
}

func (w *renderWorker) runRender(ctx context.Context) error {
	items, err := w.buildOrTake(ctx)
	if err != nil {
		return err
	}
	if w.response.IsWanting() || w.request.Discover {
		return nil // it is rendered again, with what is wanted
	}
	policies, err := w.parsePolicies()
	if err != nil {
		return err
	}
	w.rememberBuilt(items)
	if items, err = w.applyPolicies(ctx, policies, items); err != nil {
		return err
	}
	if err := w.checkSchema(items, policies.policies); err != nil {
		return err
	}
	if err := w.checkGate(ctx, items); err != nil {
		return err
	}
	return w.addObjects(items)
}

// buildOrTake returns the documents to inject into.
func (w *renderWorker) buildOrTake(ctx context.Context) ([]fn.Item, error) {
	if w.request.Given != nil {
		return w.readGivenBuild()
	}
	items, err := w.buildItems(ctx)
	if err == nil {
		err = w.checkUnused()
	}
	if err != nil || w.request.Discover {
		return nil, err
	}
	if w.response.IsWanting() {
		return nil, w.sendBuilt(nil)
	}
	if err := w.findCredentials(items); err != nil {
		return nil, err
	}
	return items, w.sendBuilt(items)
}

// buildItems builds.
func (w *renderWorker) buildItems(ctx context.Context) ([]fn.Item, error) {
	err := w.checkBuildPath()
	if err != nil {
		return nil, err
	}
	if w.response.Type, err = reference.BuildType(w.files, *w.request); err != nil {
		return nil, err
	}
	pointers := &pointerReader{Reader: w.files}
	w.files = pointers
	w.rememberFiles()
	start := time.Now()
	var items []fn.Item
	switch w.response.Type {
	case v1alpha1.BuildKustomize:
		items, err = w.renderKustomize(ctx, w.request.Path)
	case v1alpha1.BuildKpt:
		items, err = w.renderKpt(ctx)
	case v1alpha1.BuildHelm:
		items, err = w.renderHelm(ctx)
	case v1alpha1.BuildFlux:
		items, err = w.renderFlux(ctx)
	default:
		items, err = w.renderPlain()
	}
	switch {
	case err != nil && w.response.Type == v1alpha1.BuildHelm:
		return nil, pointers.explainPointerError(err) // it names the chart
	case err != nil:
		return nil, fmt.Errorf("building %s: %w", w.request.Path, pointers.explainPointerError(err))
	}
	if items, err = w.renderReleases(ctx, items, pointers.explainPointerError); err != nil {
		return nil, fmt.Errorf("building %s: %w", w.request.Path, pointers.explainPointerError(err))
	}
	w.response.Build = time.Since(start) - w.response.Inject
	return items, nil
}

// checkBuildPath looks for the directory that is built, or the file of manifests. A chart has a path of its own.
func (w *renderWorker) checkBuildPath() error {
	if w.request.Type == v1alpha1.BuildHelm {
		return nil
	}
	field := "spec.build.path"
	if w.request.Flux != nil {
		field = "spec.build.flux.path"
	}
	info, err := w.files.Lookup(w.request.Path)
	if err != nil {
		return fmt.Errorf("%s: %w%s", field, err, tree.SuggestPath(w.files, w.request.Path))
	}
	if !info.Dir && (w.request.Flux != nil || !manifest.IsFileName(w.request.Path)) {
		return fmt.Errorf("%s: %s is not a directory", field, w.request.Path)
	}
	return nil
}

// addObjects splits the documents into objects, including the items of lists.
func (w *renderWorker) addObjects(items []fn.Item) error {
	for _, item := range items {
		source := render.Place{Path: item.Path, Line: w.lines[builtPlace{item.Path, item.Index}]}
		from := len(w.response.Objects)
		if err := w.addObject(item.Doc, source, false); err != nil {
			return err
		}
		for i := from; i < len(w.response.Objects); i++ {
			w.response.Objects[i].Unit = w.unitOf(item)
		}
	}
	return nil
}

func (w *renderWorker) addObject(doc *manifest.Document, source render.Place, inList bool) error {
	if doc.Empty() {
		return nil
	}
	var value map[string]any
	var err error
	meta, ok := doc.Peek()
	if !ok || inList {
		if value, err = doc.Object(); err != nil {
			return fmt.Errorf("reading %s: %w", doc, err)
		}
		meta = metaOf(value)
	}
	if meta.APIVersion == "" || meta.Kind == "" {
		return fmt.Errorf("reading %s: an object needs apiVersion and kind", doc)
	}
	elements, isList, err := doc.Items()
	if err != nil {
		return fmt.Errorf("reading %s: %w", doc, err)
	}
	if isList {
		for _, element := range elements {
			if err := w.addObject(element, source, true); err != nil {
				return err
			}
		}
		return nil
	}
	text := doc.Raw()
	if inList {
		if forCluster, err := w.isClusterObject(doc); w.response.Type == v1alpha1.BuildPlain && (err != nil || !forCluster) {
			return err
		}
		text = standaloneDocument(value, text)
	}
	w.response.Objects = append(w.response.Objects, render.Object{
		APIVersion: meta.APIVersion, Kind: meta.Kind, Namespace: meta.Namespace, Name: meta.Name, Source: source, YAML: text,
	})
	return nil
}

func metaOf(object map[string]any) manifest.Meta {
	var meta manifest.Meta
	meta.APIVersion, _ = object["apiVersion"].(string)
	meta.Kind, _ = object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	meta.Name, _ = metadata["name"].(string)
	meta.Namespace, _ = metadata["namespace"].(string)
	return meta
}
