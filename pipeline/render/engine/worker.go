// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
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
	used     bool // the process has rendered before
	secret   bool // what was built holds a Secret or a credential

	injection *injection
	kustomize *kustomizeBuild // nil for a build that was done before
	written   *writtenObjects // with releases or the gate
	places    documentPlaces
}

func newRenderWorker(request *render.Request, connection *render.Connection, compiled *policyCache, used bool) *renderWorker {
	w := &renderWorker{request: request, files: connection.Files(), out: connection, used: used, places: newDocumentPlaces()}
	w.injection = &injection{compiled: compiled, response: &w.response}
	return w
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
	policies, err := w.injection.parsePolicies(w.request.Policies, w.releaseNamespace())
	if err != nil {
		return err
	}
	w.places.rememberBuilt(items, w.isGated())
	if items, err = w.injection.applyPolicies(ctx, policies, items); err != nil {
		return err
	}
	invalid, err := checkSchema(items, policies.policies, w.request.Schemas != nil)
	if err != nil {
		return err
	}
	w.response.Results = append(w.response.Results, invalid...)
	if err := w.checkGate(ctx, policies.policies, items); err != nil {
		return err
	}
	return w.addObjects(items)
}

// releaseNamespace returns the namespace in which Helm installs the objects of a chart that name none, or "".
func (w *renderWorker) releaseNamespace() string {
	if w.request.Helm == nil {
		return ""
	}
	return w.request.Helm.Namespace
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
	found, secret, err := findCredentials(items)
	if err != nil {
		return nil, err
	}
	w.response.Results = append(w.response.Results, found...)
	w.secret = secret
	return items, w.sendBuilt(items)
}

// buildItems builds.
func (w *renderWorker) buildItems(ctx context.Context) ([]fn.Item, error) {
	err := checkBuildPath(w.files, w.request)
	if err != nil {
		return nil, err
	}
	if w.response.Type, err = reference.BuildType(w.files, *w.request); err != nil {
		return nil, err
	}
	pointers := &pointerReader{Reader: w.files}
	w.files = pointers
	w.rememberFiles()
	w.kustomize = newKustomizeBuild(w.request, w.files, w.injection, &w.response)
	start := time.Now()
	var items []fn.Item
	switch w.response.Type {
	case v1alpha1.BuildKustomize:
		items, err = w.kustomize.render(ctx, w.request.Path)
	case v1alpha1.BuildKpt:
		items, err = (&kptBuild{w.files, w.request.Functions, w.injection}).render(ctx, w.request.Path)
	case v1alpha1.BuildHelm:
		items, err = w.renderHelm(ctx)
	case v1alpha1.BuildFlux:
		items, err = w.renderFlux(ctx)
	default:
		items, err = renderPlain(w.files, w.request.Path, w.response.AddWarning)
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
func checkBuildPath(files tree.Reader, request *render.Request) error {
	if request.Type == v1alpha1.BuildHelm {
		if helm := request.Helm; helm != nil && helm.Repository == "" {
			if _, err := files.Lookup(path.Clean(helm.Chart)); errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("spec.build.helm.chart: %w%s", err, tree.SuggestPath(files, helm.Chart))
			}
		}
		return nil
	}
	field := "spec.build.path"
	if request.Flux != nil {
		field = "spec.build.flux.path"
	}
	info, err := files.Lookup(request.Path)
	if err != nil {
		return fmt.Errorf("%s: %w%s", field, err, tree.SuggestPath(files, request.Path))
	}
	if !info.Dir && (request.Flux != nil || !manifest.IsFileName(request.Path)) {
		return fmt.Errorf("%s: %s is not a directory", field, request.Path)
	}
	return nil
}

// addObjects splits the documents into objects, including the items of lists.
func (w *renderWorker) addObjects(items []fn.Item) error {
	for _, item := range items {
		source := render.Place{Path: item.Path, Line: w.places.lineOf(item)}
		from := len(w.response.Objects)
		if err := w.addObject(item.Doc, source, false); err != nil {
			return err
		}
		for i := from; i < len(w.response.Objects); i++ {
			w.response.Objects[i].Unit = w.places.unitOf(item)
		}
	}
	if w.request.Review {
		w.response.DropRepeated()
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
		return fmt.Errorf("reading %s: an object needs apiVersion and kind; add them, such as apiVersion: v1 and kind: ConfigMap, or leave the file out of the build", doc)
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
		if forCluster, err := isClusterObject(doc); w.response.Type == v1alpha1.BuildPlain && (err != nil || !forCluster) {
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
