// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/release"
)

// releaseUnit is an Application, or the objects of a build that are none.
type releaseUnit struct {
	key    string          // NAMESPACE/NAME; "" for objects that no Application renders
	object *release.Object // nil for these
	depth  int
	items  []fn.Item
	failed bool
	// described is what the response has of an Application.
	described *render.Unit
}

// unitRun renders Applications, each as a unit.
type unitRun struct {
	*releaseRun
	units []*releaseUnit
	byKey map[string]*releaseUnit
}

// renderApplicationUnits renders the releases among items: each Application to a unit of its own, and those that it makes likewise. One
// that fails is a finding, and has no documents.
func (r *releaseRun) renderApplicationUnits(ctx context.Context, items []fn.Item) ([]fn.Item, error) {
	run := &unitRun{releaseRun: r, units: []*releaseUnit{{items: items}}, byKey: map[string]*releaseUnit{}}
	for i := 0; i < len(run.units); i++ {
		if err := run.renderReleasesOf(ctx, run.units[i]); err != nil {
			return nil, err
		}
	}
	w := r.w
	w.response.Results = append(w.response.Results, r.scopes.unknownKindFindings()...)
	var all, out []fn.Item
	for _, unit := range run.units {
		all = append(all, unit.items...)
	}
	created, err := r.addNamespaces(all)
	if err != nil {
		return nil, err
	}
	next := 1
	for _, item := range run.units[0].items {
		next = max(next, item.Index+1) // they keep their places
	}
	out = append(w.places.numberUnit(&next, "", created[:len(created)-len(all)]), run.units[0].items...)
	for _, unit := range run.units[1:] {
		if unit.described != nil {
			unit.described.Name = unit.key
			w.response.Units = append(w.response.Units, *unit.described)
		}
		if unit.failed {
			w.response.Failed = append(w.response.Failed, unit.key)
			continue
		}
		out = append(out, w.places.numberUnit(&next, unit.key, unit.items)...)
	}
	if discovers := w.request.Discover || len(w.response.Wanted) > 0; len(out) == 0 && len(w.response.Failed) > 0 && !discovers {
		return nil, resultsError("rendering Applications", w.response.Results)
	}
	return out, nil
}

// renderReleasesOf renders the releases among the documents of a unit. HelmReleases stay in the unit, and Applications are new ones.
func (r *unitRun) renderReleasesOf(ctx context.Context, unit *releaseUnit) error {
	var kept []fn.Item
	for _, item := range unit.items {
		object, err := r.releaseOfItem(item, unit.object)
		if err != nil {
			return err
		}
		if object == nil {
			kept = append(kept, item)
			continue
		}
		if r.w.request.Review && object.Ref().Kind == "HelmRelease" {
			kept = append(kept, item)
		} else if r.w.request.Releases.Originals == v1alpha1.OriginalsSuspend && !isApplicationSet(unit.object) {
			if item, err = suspendRelease(item, object); err != nil {
				return err
			}
			kept = append(kept, item)
		}
		made := &releaseUnit{key: r.keyOf(object), object: object, depth: unit.depth + 1}
		if known := r.byKey[made.key]; known != nil {
			if !reflect.DeepEqual(known.object.Value["spec"], object.Value["spec"]) {
				r.report(unit, release.Finding(result.Warning, object, "", "is defined a second time and differently; the first definition is rendered"))
			}
			continue // such as one that renders the directory that it is in
		}
		if r.w.request.Review && object.Ref().Kind != "HelmRelease" && !isApplicationSet(unit.object) {
			kept = append(kept, item) // a review shows its own changes, too
		}
		if object.Ref().Kind != "HelmRelease" {
			r.byKey[made.key] = made
			r.units = append(r.units, made)
		}
		if err := r.renderInto(ctx, made); err != nil {
			return err
		}
		if r.w.request.Review && made.failed && object.Ref().Kind != "HelmRelease" && isApplicationSet(unit.object) {
			kept = append(kept, item) // it is compared as an object then
		}
		if object.Ref().Kind == "HelmRelease" {
			kept = append(kept, made.items...)
			r.failHelmRelease(unit, made)
		}
	}
	unit.items = kept
	return nil
}

// failHelmRelease fails the unit of a HelmRelease that failed: an Application, or the HelmRelease itself.
func (r *unitRun) failHelmRelease(unit, made *releaseUnit) {
	switch {
	case !made.failed:
	case unit.key != "":
		unit.failed = true
	default:
		r.units = append(r.units, &releaseUnit{key: made.key, object: made.object, failed: true})
	}
}

// keyOf returns NAMESPACE/NAME of a release, and its kind if it is no Application.
func (r *unitRun) keyOf(object *release.Object) string {
	ref := object.Ref()
	namespace := ref.Namespace
	if namespace == "" {
		namespace = r.w.request.Releases.Namespace
	}
	if ref.Kind == "Application" {
		return namespace + "/" + ref.Name
	}
	return namespace + "/" + ref.Kind + " " + ref.Name
}

// renderInto renders the release of a unit to its documents. An error is a finding, unless the render ends.
func (r *unitRun) renderInto(ctx context.Context, unit *releaseUnit) error {
	r.results, r.unit = nil, nil
	items, err := r.renderGuarded(ctx, unit)
	unit.described = r.unit
	if ctx.Err() != nil {
		return err
	}
	r.report(unit, r.results...)
	r.results = nil
	if err != nil {
		r.report(unit, release.Finding(result.Error, unit.object, "", r.explain(err).Error()))
	}
	if !unit.failed {
		unit.items = items
	}
	return nil
}

// renderGuarded renders the release of a unit. A panic of a library is an error.
func (r *unitRun) renderGuarded(ctx context.Context, unit *releaseUnit) (items []fn.Item, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			items, err = nil, fmt.Errorf("rendering: the library gave up: %v", panicked)
		}
	}()
	if unit.depth > maxReleaseDepth {
		return nil, errors.New("is made by releases, more than " + fmt.Sprint(maxReleaseDepth) + " below each other")
	}
	return r.renderOne(ctx, unit.object)
}

// report adds findings about a unit. An error fails it.
func (r *unitRun) report(unit *releaseUnit, found ...result.Result) {
	for _, one := range found {
		one.Tags = maps.Clone(one.Tags)
		if one.Tags == nil {
			one.Tags = map[string]string{}
		}
		if unit.key != "" {
			one.Tags[render.TagUnit] = unit.key
		}
		unit.failed = unit.failed || one.Severity == result.Error
		if one.Severity == result.Error && release.IsOutside(one.Message) {
			one.Tags[render.TagOutside] = "true"
		}
		r.w.response.Results = append(r.w.response.Results, one)
	}
}
