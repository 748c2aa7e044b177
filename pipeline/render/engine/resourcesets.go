// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render/engine/flux"
	"github.com/prerig/prerig/pipeline/render/engine/release"
)

// resourceSet is a ResourceSet of a unit that is yet to be replaced by what it makes. It is, once all units that are known are built: any of
// them may have its input providers.
type resourceSet struct {
	unit   *fluxUnit
	item   fn.Item
	object *release.Object
}

// resourceSetOf returns the ResourceSet that an item is, nil for others.
func (r *fluxRun) resourceSetOf(item fn.Item) (*release.Object, error) {
	meta, ok := item.Doc.Peek()
	if !ok || !flux.IsResourceSet(meta.APIVersion, meta.Kind) {
		return nil, nil
	}
	return r.objectOf(item)
}

// expandSets replaces ResourceSets by what they make, and adds the Kustomizations in it. It reports whether there were any.
func (r *fluxRun) expandSets() bool {
	sets := r.sets
	r.sets = nil
	for _, set := range sets {
		if err := r.expandSet(set); err != nil {
			r.report(set.unit, release.ErrorFinding(set.object, err))
		}
	}
	return len(sets) > 0
}

// itemsOf writes objects as documents.
func itemsOf(objects []map[string]any) (items []fn.Item, err error) {
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		file, err := manifest.Parse("", text)
		if err != nil {
			return nil, err
		}
		for _, doc := range file.Docs {
			items = append(items, fn.Item{Doc: doc})
		}
	}
	return items, nil
}

func (r *fluxRun) expandSet(set resourceSet) error {
	ref := set.object.Ref()
	key := fluxObject{ref.Kind, ref.Namespace, ref.Name}
	r.expanded[key]++
	if r.w.request.Review && r.expanded[key] > 1 {
		r.report(set.unit, release.Finding(result.Warning, set.object, "", "is made a second time; the first one is expanded"))
		return nil
	}
	if r.expanded[key] > 1 || len(r.expanded) > maxFluxUnits {
		return release.FieldError(set.object, "", "is made more than once, or more than %d are made: one may make another without end", maxFluxUnits)
	}
	read, err := flux.ReadResourceSet(set.object)
	if err != nil {
		return err
	}
	var providers []*release.Object
	for known, object := range r.objects {
		if known.kind == flux.InputProviderKind {
			providers = append(providers, object)
		}
	}
	objects, err := read.Build(providers, r.w.request.Review)
	if left, ok := errors.AsType[*flux.LeftError](err); ok {
		r.report(set.unit, release.Finding(result.Warning, set.object, left.Field, left.Reason+"; it is left to its controller, and stays in the result"))
		set.unit.items = append(set.unit.items, set.item)
		return nil
	}
	if err != nil {
		return err
	}
	items, err := itemsOf(objects)
	if err != nil {
		return fmt.Errorf("writing what it makes: %w", err)
	}
	if err := r.addReferred(items); err != nil {
		return err
	}
	kept, err := r.followKustomizations(set.unit, items)
	if err != nil {
		return err
	}
	if releases := r.w.request.Releases; releases != nil && releases.Originals == v1alpha1.OriginalsSuspend {
		suspended, err := suspendRelease(set.item, set.object)
		if err != nil {
			return err
		}
		kept = append(kept, suspended)
	}
	set.unit.items = append(set.unit.items, kept...)
	return nil
}
