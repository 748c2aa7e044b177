// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/flux"
	"github.com/prerig/prerig/pipeline/render/engine/release"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// maxReleaseDepth bounds releases whose charts make releases, such as an app of apps.
const maxReleaseDepth = 5

// releaseRun renders the releases of one build.
type releaseRun struct {
	w       *renderWorker
	set     *release.Set
	scopes  *scopes
	beside  []fn.Item        // objects that are referred to, and are not part of the build
	created []map[string]any // namespaces
	results result.Results
	explain func(error) error // of what was read
	unit    *render.Unit      // the Application that was rendered last
	files   *tree.Mounts      // those of the build, with artifacts
}

// newReleaseRun returns a run with the objects that the request names beside those of the build. explain explains errors of what was
// read; ofFlux is the run whose HelmReleases are rendered, or nil.
func (w *renderWorker) newReleaseRun(ctx context.Context, explain func(error) error, ofFlux *fluxRun) (*releaseRun, error) {
	beside, err := w.readReferencedObjects(ctx)
	if err != nil {
		return nil, err
	}
	r := &releaseRun{w: w, scopes: newScopes(w.request.Releases.KubeVersion, !w.request.Review), beside: beside, explain: explain, files: tree.NewMounts(w.files)}
	inputs := release.Inputs{
		Spec: w.request.Releases, Files: boundedAliases{r.files}, Archives: lockedCharts(w.request.Charts), Trees: w.request.Repositories,
		Warn:           w.response.AddWarning,
		BuildKustomize: w.kustomize.renderTexts,
	}
	if flux := w.request.Flux; flux != nil {
		inputs.Own, inputs.Substituted = flux.Source, true
	}
	if ofFlux != nil {
		inputs.MountArtifact = func(namespace, name string) (root, chart string, err error) {
			return fluxArtifacts{ofFlux}.mountChart(r.files, namespace, name)
		}
	}
	r.set = release.New(inputs)
	return r, nil
}

// renderReleases puts what releases render to in the place of the releases among items, if the request asks for it. One that
// fails is among the results, and the others are rendered all the same.
func (w *renderWorker) renderReleases(ctx context.Context, items []fn.Item, explain func(error) error) ([]fn.Item, error) {
	if w.request.Releases == nil || w.response.Type == v1alpha1.BuildFlux {
		return items, nil
	}
	r, err := w.newReleaseRun(ctx, explain, nil)
	if err != nil {
		return nil, err
	}
	if items, err = splitReleaseLists(items); err != nil {
		return nil, err
	}
	if err := r.addObjects(slices.Concat(items, r.beside)); err != nil {
		return nil, err
	}
	if w.request.Releases.PerApplication {
		return r.renderApplicationUnits(ctx, items)
	}
	if items, err = r.renderAll(ctx, items, nil, 0); err != nil {
		return nil, err
	}
	w.response.Results = append(w.response.Results, r.takeResults()...)
	w.response.Results = append(w.response.Results, r.scopes.unknownKindFindings()...)
	return r.addNamespaces(items)
}

// takeResults returns the findings since the last call. An error is the reason why a release is not in the result.
func (r *releaseRun) takeResults() result.Results {
	out := r.results
	r.results = nil
	for i := range out {
		if out[i].Severity == result.Error {
			tags := map[string]string{result.TagCode: render.CodeNotRendered}
			if out[i].Tags[render.TagUnlocked] != "" {
				tags[render.TagUnlocked] = out[i].Tags[render.TagUnlocked]
			}
			if release.IsOutside(out[i].Message) {
				tags[render.TagOutside] = "true"
			}
			out[i].Tags = tags
		}
	}
	return out
}

// renderAll renders the releases among items, and those that come of them. parent is the release that the items come of.
func (r *releaseRun) renderAll(ctx context.Context, items []fn.Item, parent *release.Object, depth int) ([]fn.Item, error) {
	var out []fn.Item
	for _, item := range items {
		object, err := r.releaseOfItem(item, parent)
		if err != nil {
			return nil, err
		}
		if object == nil {
			out = append(out, item)
			continue
		}
		made, err := r.renderUnit(ctx, object, depth)
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			r.results = append(r.results, release.Finding(result.Error, object, "", r.explain(err).Error()))
		}
		if r.w.request.Review && object.Ref().Kind == "HelmRelease" {
			out = append(out, item)
		} else if r.w.request.Releases.Originals == v1alpha1.OriginalsSuspend && !isApplicationSet(parent) {
			if item, err = suspendRelease(item, object); err != nil {
				return nil, err
			}
			out = append(out, item)
		}
		out = append(out, made...)
	}
	return out, nil
}

// renderUnit renders one release and those that it makes. A panic of a library is an error.
func (r *releaseRun) renderUnit(ctx context.Context, object *release.Object, depth int) (made []fn.Item, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			made, err = nil, fmt.Errorf("rendering: the library gave up: %v", panicked)
		}
	}()
	if depth >= maxReleaseDepth {
		return nil, fmt.Errorf("is made by a release, more than %d below each other", maxReleaseDepth)
	}
	if made, err = r.renderOne(ctx, object); err != nil {
		return nil, err
	}
	return r.renderAll(ctx, made, object, depth+1)
}

// isApplicationSet reports whether a release, which may be nil, is an ApplicationSet. What it makes exists in the cluster only.
func isApplicationSet(o *release.Object) bool { return o != nil && o.Ref().Kind == "ApplicationSet" }

// releaseOfItem returns the release that an item is, nil for others. parent is what made the item.
func (r *releaseRun) releaseOfItem(item fn.Item, parent *release.Object) (*release.Object, error) {
	if meta, ok := item.Doc.Peek(); item.Doc.Empty() || ok && !release.IsRelease(meta.APIVersion, meta.Kind) {
		return nil, nil
	}
	object, err := r.objectOf(item)
	if err != nil || !r.set.Claims(object) {
		return nil, err
	}
	if isApplicationSet(parent) {
		object.Locate = func(at []any) *result.File { return parent.Locate(append([]any{"spec", "template"}, at...)) }
	}
	return object, nil
}

// objectOf decodes an item.
func (r *releaseRun) objectOf(item fn.Item) (*release.Object, error) {
	value, err := item.Doc.Object()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", item.Doc, err)
	}
	doc := item.Doc
	return &release.Object{Value: value, Locate: func(at []any) *result.File {
		if doc.Path() != "" {
			line, _ := locateField(doc, at)
			return &result.File{Path: doc.Path(), Index: doc.Index(), Line: line}
		}
		return r.w.written.locateWrittenField(value, at)
	}}, nil
}

// renderOne renders one release to items.
func (r *releaseRun) renderOne(ctx context.Context, object *release.Object) ([]fn.Item, error) {
	rendered, err := r.set.Render(ctx, object)
	if err != nil {
		return nil, err
	}
	r.unit = rendered.Unit
	wanted := len(r.w.response.Wanted)
	if err := r.recordMissingCharts(ctx, object, rendered); err != nil {
		return nil, err
	}
	if len(rendered.Local) > 0 && len(r.w.response.Wanted) > wanted {
		return nil, nil // errors that follow from missing dependencies are not reported
	}
	r.results = append(r.results, rendered.Results...)
	if rendered.Created != nil {
		r.created = append(r.created, rendered.Created)
	}
	var items []fn.Item
	for _, one := range rendered.Manifests {
		file, err := manifest.Parse(one.Path, []byte(one.YAML))
		if err != nil {
			return nil, fmt.Errorf("reading what %s renders to: %w", one.Template, err)
		}
		for i, doc := range file.Docs {
			if one.Path == "" {
				i = len(items)
			}
			if !doc.Empty() {
				items = append(items, fn.Item{Doc: doc, Path: one.Path, Index: i})
			}
		}
	}
	if items, err = splitReleaseLists(items); err != nil {
		return nil, err
	}
	if err := r.addObjects(items); err != nil {
		return nil, err
	}
	ref := object.Ref()
	for i := range items {
		if items[i].Doc, err = r.scopes.withNamespace(items[i].Doc, rendered.Namespace); err != nil {
			return nil, fmt.Errorf("reading what %s renders to: %w", ref.String(), err)
		}
	}
	if ref.Kind == "Application" {
		return lastOfEach(items)
	}
	return items, nil
}

// readReferencedObjects reads the objects that releases refer to and that are not part of the build.
func (w *renderWorker) readReferencedObjects(ctx context.Context) ([]fn.Item, error) {
	var out []fn.Item
	for i, at := range w.request.Releases.Objects {
		items, err := w.readObjectsAt(ctx, at)
		if err != nil {
			return nil, fmt.Errorf("reading spec.build.releases.objects[%d]: %w", i, err)
		}
		out = append(out, items...)
	}
	return splitReleaseLists(out)
}

func (w *renderWorker) readObjectsAt(ctx context.Context, at string) ([]fn.Item, error) {
	info, err := w.files.Lookup(at)
	switch {
	case err != nil:
		return nil, err
	case !info.Dir:
		return readFile(w.files, at, isClusterObject)
	}
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if _, err := w.files.Lookup(at + "/" + name); err == nil {
			return w.kustomize.render(ctx, at)
		}
	}
	return collectFiles(w.files, at, w.response.AddWarning)
}

// referredKinds are the kinds of objects that releases refer to or that define the kinds of others.
var referredKinds = []string{"HelmRepository", "OCIRepository", "GitRepository", "HelmChart", "ConfigMap", "Secret", "CustomResourceDefinition"}

// addObjects notes what releases can refer to.
func (r *releaseRun) addObjects(items []fn.Item) error {
	for _, item := range items {
		if item.Doc.Empty() {
			continue
		}
		if meta, ok := item.Doc.Peek(); ok && !slices.Contains(referredKinds, meta.Kind) {
			continue
		}
		object, err := r.objectOf(item)
		if err != nil {
			return err
		}
		r.set.Add(object)
		r.scopes.addDefinition(object.Value)
	}
	return nil
}

// splitReleaseLists splits lists that contain a release or objects that releases refer to.
func splitReleaseLists(items []fn.Item) ([]fn.Item, error) {
	var out []fn.Item
	for _, item := range items {
		elements, isList, err := item.Doc.Items()
		if err != nil || !isList {
			out = append(out, item) // errors are reported when it is read
			continue
		}
		for _, element := range elements {
			value, err := element.Object()
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", element, err)
			}
			file, err := manifest.Parse(item.Path, standaloneDocument(value, element.Raw()))
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", element, err)
			}
			for _, doc := range file.Docs {
				out = append(out, fn.Item{Doc: doc, Path: item.Path, Index: item.Index})
			}
		}
	}
	return out, nil
}

// suspendRelease returns the object of a release with what has its controller leave it alone.
func suspendRelease(item fn.Item, object *release.Object) (fn.Item, error) {
	value := maps.Clone(object.Value)
	child := func(parent map[string]any, key string) map[string]any {
		below, _ := parent[key].(map[string]any)
		if below = maps.Clone(below); below == nil {
			below = map[string]any{}
		}
		parent[key] = below
		return below
	}
	marked := value
	switch object.Ref().Kind {
	case "HelmRelease", "Kustomization":
		child(value, "spec")["suspend"] = true
	case "ResourceSet":
		child(child(value, "metadata"), "annotations")[flux.ReconcileAnnotation] = flux.ReconcileDisabled
	case "ApplicationSet": // its Applications are marked
		marked = child(child(value, "spec"), "template")
		fallthrough
	default:
		child(child(marked, "metadata"), "annotations")["argocd.argoproj.io/skip-reconcile"] = "true"
	}
	doc, err := item.Doc.With(value)
	if err != nil {
		return item, fmt.Errorf("suspending %s: %w", item.Doc, err)
	}
	item.Doc = doc
	return item, nil
}

// lastOfEach leaves out all but the last of several objects of one name, as Argo CD does with those of several sources.
func lastOfEach(items []fn.Item) ([]fn.Item, error) {
	last := map[manifest.Meta]int{}
	metas := make([]manifest.Meta, len(items))
	for i, item := range items {
		value, err := item.Doc.Object()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", item.Doc, err)
		}
		metas[i] = metaOf(value)
		last[metas[i]] = i
	}
	var out []fn.Item
	for i, item := range items {
		if metas[i].Name == "" || last[metas[i]] == i {
			out = append(out, item)
		}
	}
	return out, nil
}

// addNamespaces adds the missing namespaces that releases would create.
func (r *releaseRun) addNamespaces(items []fn.Item) ([]fn.Item, error) {
	var out []fn.Item
	known := map[string]bool{}
	for _, item := range items {
		if meta, ok := item.Doc.Peek(); ok && meta.Kind == "Namespace" {
			known[meta.Name] = true
		}
	}
	for _, one := range r.created {
		name := metaOf(one).Name
		if known[name] {
			continue
		}
		known[name] = true
		file, err := manifest.Parse("", manifest.Marshal(one))
		if err != nil {
			return nil, err
		}
		out = append(out, fn.Item{Doc: file.Docs[0], Index: len(out)})
	}
	return append(out, items...), nil
}
