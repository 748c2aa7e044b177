// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/artifact"
	"github.com/prerig/prerig/pipeline/render/engine/flux"
	"github.com/prerig/prerig/pipeline/render/engine/release"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Bounds of a cluster: a prefix that a Kustomization adds to its own name would make new ones without end.
const (
	maxFluxUnits = 2000
	maxFluxDepth = 20
)

// fluxUnit is one Kustomization of Flux.
type fluxUnit struct {
	key   string              // NAMESPACE/NAME
	k     *flux.Kustomization // nil for an entry that no Kustomization is known for
	dir   string
	depth int

	built, failed bool
	items         []fn.Item
	// files are those of the artifact that it builds, nil for those of a repository.
	files tree.Reader
}

// fluxObject names a ConfigMap, a Secret or a source.
type fluxObject struct{ kind, namespace, name string }

// fluxRun builds the Kustomizations of a cluster.
type fluxRun struct {
	w       *renderWorker
	set     *release.Set // for the sources
	units   []*fluxUnit
	byKey   map[string]*fluxUnit
	objects map[fluxObject]*release.Object
	// sets are the ResourceSets to expand, expanded those that were.
	sets     []resourceSet
	expanded map[fluxObject]int
	// waiting are the Kustomizations that wait for a generator of artifacts, until late.
	waiting []waitingKustomization
	late    bool
	// left are the Kustomizations that are left to the cluster, with the reasons.
	left map[string]string
	// In a review, paths are those by which Kustomizations read artifacts, by the sources; pushed are the sources themselves, and
	// directories those of the tree, nil before they are asked for.
	paths       map[string][]string
	pushed      map[fluxObject]*release.Object
	directories []string
}

// renderFlux builds what Flux applies to a cluster: the Kustomization at the entry, those in its result, and so on.
// One that fails is a finding, and has no documents.
func (w *renderWorker) renderFlux(ctx context.Context) ([]fn.Item, error) {
	r := &fluxRun{w: w, byKey: map[string]*fluxUnit{}, objects: map[fluxObject]*release.Object{}, expanded: map[fluxObject]int{}, left: map[string]string{}, paths: map[string][]string{}, pushed: map[fluxObject]*release.Object{}}
	openapi.Schema() // a schema that a kustomization names adds to it
	r.set = release.New(release.Inputs{Spec: &v1alpha1.Releases{}, Trees: w.request.Repositories})
	if err := r.addEntry(ctx); err != nil {
		return nil, err
	}
	for more := true; more; more = r.expandSets() || (fluxArtifacts{r}).followWaiting() {
		for unit := r.nextUnit(); unit != nil; unit = r.nextUnit() {
			r.buildUnit(ctx, unit)
		}
	}
	r.checkDependencies()
	if err := r.renderUnitReleases(ctx); err != nil {
		return nil, err
	}
	return r.collectItems()
}

// addEntry adds the unit of the entry. Its own Kustomization is usually in its result, as flux bootstrap writes it.
func (r *fluxRun) addEntry(ctx context.Context) error {
	entry := &fluxUnit{key: r.w.request.Flux.Source, dir: render.CleanPath(r.w.request.Path)}
	if err := r.buildItems(ctx, entry); err != nil {
		return err
	}
	if r.w.request.Review {
		fluxReview{r}.notePaths(entry, entry.items)
	}
	if err := r.addReferred(entry.items); err != nil {
		return err
	}
	for _, item := range entry.items {
		object, err := r.kustomizationOf(item)
		if err != nil {
			return err
		}
		if object == nil {
			continue
		}
		k, _, err := fluxReview{r}.readKustomization(entry, object)
		if err != nil {
			continue // it is reported when the unit is searched for others
		}
		if dir, _, err := r.directoryOf(entry, k); err == nil && dir == entry.dir {
			entry.key, entry.k = k.Key(), k
			break
		}
	}
	entry.items = nil
	r.addUnit(entry)
	return nil
}

func (r *fluxRun) addUnit(unit *fluxUnit) {
	r.units = append(r.units, unit)
	r.byKey[unit.key] = unit
}

// buildUnit builds a unit, and adds the units that are in its result.
func (r *fluxRun) buildUnit(ctx context.Context, unit *fluxUnit) {
	unit.built = true
	err := r.buildItems(ctx, unit)
	if err == nil {
		err = r.addReferred(unit.items)
	}
	if err == nil {
		unit.items, err = r.followKustomizations(unit, unit.items) // of one that fails by another object, too
	}
	if err != nil {
		r.failUnit(unit, err)
	}
}

// failUnit records why a unit has no documents.
func (r *fluxRun) failUnit(unit *fluxUnit, err error) {
	found := result.Result{Severity: result.Error, Message: err.Error()}
	if unit.k != nil {
		found = release.ErrorFinding(unit.k.Object, err)
	}
	r.report(unit, found)
}

// report adds findings about a unit. An error fails it, unless it is about one of its releases.
func (r *fluxRun) report(unit *fluxUnit, found ...result.Result) {
	for _, one := range found {
		one.Tags = maps.Clone(one.Tags)
		if one.Tags == nil {
			one.Tags = map[string]string{}
		}
		one.Tags[render.TagUnit] = unit.key
		unit.failed = unit.failed || one.Severity == result.Error && one.Tags[result.TagCode] != render.CodeNotRendered
		r.w.response.Results = append(r.w.response.Results, one)
	}
}

// addReferred notes the objects of a unit that others can refer to.
func (r *fluxRun) addReferred(items []fn.Item) error {
	for _, item := range items {
		meta, ok := item.Doc.Peek()
		if ok && !slices.Contains(referredKindsOfFlux, meta.Kind) {
			continue
		}
		object, err := r.objectOf(item)
		if err != nil {
			return err
		}
		ref := object.Ref()
		r.objects[fluxObject{ref.Kind, ref.Namespace, ref.Name}] = object
	}
	return nil
}

func (r *fluxRun) objectOf(item fn.Item) (*release.Object, error) {
	return (&releaseRun{w: r.w}).objectOf(item)
}

// kustomizationOf returns the Kustomization of Flux that an item is, nil for others.
func (r *fluxRun) kustomizationOf(item fn.Item) (*release.Object, error) {
	meta, ok := item.Doc.Peek()
	if item.Doc.Empty() || ok && !flux.IsKustomization(meta.APIVersion, meta.Kind) {
		return nil, nil
	}
	object, err := r.objectOf(item)
	if err != nil || !flux.IsKustomization(object.Ref().APIVersion, object.Ref().Kind) {
		return nil, err
	}
	return object, nil
}

// followKustomizations adds the Kustomizations among items of a unit, and returns the other items. Those that cannot be followed stay, for
// their controller. ResourceSets wait.
func (r *fluxRun) followKustomizations(unit *fluxUnit, items []fn.Item) (kept []fn.Item, err error) {
	if r.w.request.Review {
		fluxReview{r}.notePaths(unit, items)
	}
	for _, item := range items {
		set, err := r.resourceSetOf(item)
		if err != nil {
			return nil, err
		}
		if set != nil {
			r.sets = append(r.sets, resourceSet{unit, item, set})
			continue
		}
		object, err := r.kustomizationOf(item)
		if err != nil {
			return nil, err
		}
		if object != nil && (fluxArtifacts{r}).waits(object) {
			r.waiting = append(r.waiting, waitingKustomization{unit, item})
			if r.w.request.Review {
				kept = append(kept, item)
			}
			continue
		}
		if object == nil || !r.followKustomization(unit, object) || r.w.request.Review {
			kept = append(kept, item)
			continue
		}
		if releases := r.w.request.Releases; releases != nil && releases.Originals == v1alpha1.OriginalsSuspend {
			suspended, err := suspendRelease(item, object)
			if err != nil {
				return nil, err
			}
			kept = append(kept, suspended)
		}
	}
	return kept, nil
}

// followKustomization adds a unit for a Kustomization, and reports false for one that is left to its controller.
func (r *fluxRun) followKustomization(from *fluxUnit, object *release.Object) bool {
	k, warnings, err := fluxReview{r}.readKustomization(from, object)
	r.report(from, warnings...)
	if err != nil {
		ref := object.Ref()
		broken := &fluxUnit{key: ref.Namespace + "/" + ref.Name, built: true}
		r.addUnit(broken)
		r.report(broken, release.ErrorFinding(object, err))
		return true
	}
	if known := r.byKey[k.Key()]; known != nil {
		if known.k != nil && !reflect.DeepEqual(known.k.Spec, k.Spec) {
			r.report(from, release.Finding(result.Warning, object, "", "is defined a second time and differently; the first definition is built"))
		}
		return true
	}
	dir, files, err := r.directoryOf(from, k)
	if left := (*leftError)(nil); errors.As(err, &left) {
		r.left[k.Key()] = left.reason
		r.report(from, release.Finding(result.Warning, object, "", left.reason+"; it is left to Flux, and stays in the result"))
		return false
	}
	unit := &fluxUnit{key: k.Key(), k: k, dir: dir, files: files, depth: from.depth + 1}
	if err != nil {
		unit.built = true
		r.addUnit(unit)
		r.report(unit, release.Finding(result.Error, object, "spec.sourceRef", err.Error()))
		return true
	}
	r.addUnit(unit)
	switch {
	case unit.depth > maxFluxDepth:
		unit.built = true
		r.report(unit, release.Finding(result.Error, object, "", fmt.Sprintf("is made by Kustomizations more than %d below each other: one may make itself under a new name", maxFluxDepth)))
	case len(r.units) > maxFluxUnits:
		unit.built = true
		r.report(unit, release.Finding(result.Error, object, "", fmt.Sprintf("is one of more than %d Kustomizations of a cluster", maxFluxUnits)))
	}
	return true
}

// directoryOf returns the directory that a Kustomization of a unit builds, with the files if they are those of an artifact. A leftError is
// why it is left to its controller.
func (r *fluxRun) directoryOf(from *fluxUnit, k *flux.Kustomization) (dir string, files tree.Reader, err error) {
	ref := k.Spec.SourceRef
	key := dependencyKey(k, ref.Namespace, ref.Name)
	source := fmt.Sprintf("spec.sourceRef names %s %s", ref.Kind, key)
	namespace, name, _ := strings.Cut(key, "/")
	switch {
	case k.Spec.KubeConfig != nil:
		return "", nil, &leftError{"spec.kubeConfig applies it to another cluster"}
	case k.Spec.Suspend && !r.w.request.Review:
		return "", nil, &leftError{"spec.suspend is true, so that only the cluster knows what it has applied"}
	case ref.Kind == artifact.ExternalKind:
		files, err = fluxArtifacts{r}.open(namespace, name, 0)
		if left := (*leftError)(nil); errors.As(err, &left) {
			return "", nil, &leftError{source + ", and " + left.reason}
		}
		return render.CleanPath(k.Spec.Path), files, err
	case r.w.request.Review && fluxReview{r}.isOwnSource(from, k):
		dir, err = fluxReview{r}.directoryOfOwn(from, k)
		return dir, nil, err
	case key == r.w.request.Flux.Source:
		return render.CleanPath(k.Spec.Path), nil, nil
	case ref.Kind != "GitRepository":
		return "", nil, &leftError{source + ", which is not this source; spec.build.flux.source names it"}
	}
	object := r.objects[fluxObject{ref.Kind, namespace, name}]
	if object == nil {
		return "", nil, &leftError{source + ", which is not among the objects of the tree; if it is this source, name it in spec.build.flux.source"}
	}
	root, err := r.set.FindRepository(object)
	if err != nil {
		return "", nil, &leftError{source + ": " + err.Error()}
	}
	return path.Join(root, render.CleanPath(k.Spec.Path)), nil, nil
}

// collectItems returns the documents of all units that did not fail.
func (r *fluxRun) collectItems() ([]fn.Item, error) {
	var items []fn.Item
	next := 1
	r.w.places.rememberUnit(0, r.units[0].key) // of documents that an injection adds
	for _, unit := range r.units {
		if unit.failed {
			r.w.response.Failed = append(r.w.response.Failed, unit.key)
			continue
		}
		items = append(items, r.w.places.numberUnit(&next, unit.key, unit.items)...)
	}
	if r.w.request.Review {
		r.w.response.Units = fluxReview{r}.describeUnits()
	}
	discovers := r.w.request.Discover || r.w.response.IsWanting()
	if len(r.w.response.Failed) == len(r.units) && !discovers {
		return nil, resultsError("building Kustomizations", r.w.response.Results)
	}
	return items, nil
}
