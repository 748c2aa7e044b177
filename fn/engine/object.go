// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/sidecar"
)

// addedObject is one object that sidecars add, with who wants it.
type addedObject struct {
	meta     manifest.Meta
	obj      map[string]any
	owner    result.ResourceRef
	sidecars []string
	// exists reports whether the items contain it.
	exists bool
}

// addObjects reconciles the objects that sidecars add with the items: one that an earlier run added is replaced, or
// removed if no sidecar wants it any more, and missing ones are returned. If a workload has failed it does not
// change any, as the full set of wanted objects is unknown.
func (in *Injector) addObjects(units []*documentUnit) (added []*manifest.Document, results result.Results) {
	for _, u := range units {
		if u.results.Worst() == result.Error && in.mode != v1alpha1.ModeCheck {
			return nil, nil
		}
	}
	wanted, results := in.wantedObjects(units)
	if results.Worst() == result.Error {
		return nil, results
	}
	for _, u := range units {
		if u.elements == nil && !u.broken {
			in.alignObject(u, wanted, units)
		}
	}
	for _, meta := range slices.SortedFunc(maps.Keys(wanted), compareMeta) {
		w := wanted[meta]
		if w.exists {
			continue
		}
		if in.mode == v1alpha1.ModeCheck {
			results = append(results, w.errorResult("it is missing: the sidecar "+strings.Join(w.sidecars, ", ")+" of "+w.owner.String()+" adds it; run the injection and commit its output"))
			continue
		}
		file, err := manifest.Parse("", manifest.Marshal(w.withOwnershipMark(nil)))
		if err != nil || len(file.Docs) != 1 {
			results = append(results, w.errorResult(fmt.Sprintf("writing the object: %v", err)))
			continue
		}
		added = append(added, file.Docs[0])
	}
	return added, results
}

// wantedObjects collects what the workloads' sidecars add. What several add in the same way is one object.
func (in *Injector) wantedObjects(units []*documentUnit) (map[manifest.Meta]*addedObject, result.Results) {
	wanted := map[manifest.Meta]*addedObject{}
	var results result.Results
	for _, u := range units {
		for _, o := range u.objects {
			meta := metaOf(o.obj)
			had, ok := wanted[meta]
			switch {
			case ok && !podmap.Equal(had.obj, o.obj):
				results = append(results, had.errorResult(fmt.Sprintf("the sidecar %s of %s and the sidecar %s of %s both add it, and differently; give it a name of its own for each workload, "+
					"in the sidecar's template or by an annotation that it reads, such as fluent-bit.prerig.dev/config-map",
					strings.Join(had.sidecars, ", "), had.owner, o.sidecar, o.owner)))
			case ok && !slices.Contains(had.sidecars, o.sidecar):
				had.sidecars = append(had.sidecars, o.sidecar)
				slices.Sort(had.sidecars)
			case !ok:
				wanted[meta] = &addedObject{meta: meta, obj: o.obj, owner: o.owner, sidecars: []string{o.sidecar}}
			}
			if _, isWorkload := in.registry.Lookup(meta.APIVersion, meta.Kind); isWorkload && !ok {
				results = append(results, wanted[meta].errorResult(fmt.Sprintf("the sidecar %s of %s adds it; a sidecar cannot add workloads", o.sidecar, o.owner)))
			}
		}
	}
	for _, u := range units {
		for _, o := range in.keptObjects(u) {
			if meta := metaOf(o.obj); wanted[meta] == nil {
				wanted[meta] = &addedObject{meta: meta, obj: o.obj, owner: o.owner, sidecars: []string{o.sidecar}}
			}
		}
	}
	return wanted, results
}

// alignObject compares an item with what is wanted. What a pod refers to that is kept stays with it.
func (in *Injector) alignObject(u *documentUnit, wanted map[manifest.Meta]*addedObject, units []*documentUnit) {
	w := wanted[u.meta]
	if in.asIs {
		if w != nil {
			w.exists = true
		}
		return
	}
	if w == nil && !u.doc.Contains(sidecar.ObjectAnnotation) {
		return
	}
	obj, err := u.doc.Object()
	if err != nil {
		if w != nil {
			u.addError("", err)
		}
		return
	}
	meta, _ := obj["metadata"].(map[string]any)
	_, marked := stringMap(meta["annotations"])[sidecar.ObjectAnnotation]
	switch {
	case w == nil && !marked:
	case w == nil && slices.ContainsFunc(units, func(other *documentUnit) bool { return other.keptPodReferences(u.meta) }):
	case w == nil && in.mode == v1alpha1.ModeCheck:
		u.addResult(result.Error, "", "no sidecar adds this object any more; run the injection and commit its output")
	case w == nil:
		u.dropped = true
		u.addResult(result.Info, "", "taken out: no sidecar adds this object any more")
	case !marked:
		w.exists = true
		u.addResult(result.Error, "", fmt.Sprintf("the sidecar %s of %s adds an object of this name, and this one is not the sidecar's (it has no annotation %s); rename one of them",
			strings.Join(w.sidecars, ", "), w.owner, sidecar.ObjectAnnotation))
	case w.exists:
		u.addResult(result.Error, "", "this object of a sidecar is there twice; remove one of them")
	default:
		w.exists = true
		u.replaceObject(in.mode, w.withOwnershipMark(meta))
	}
}

// replaceObject edits an object of an earlier run.
func (u *documentUnit) replaceObject(mode v1alpha1.Mode, want map[string]any) {
	changed, err := u.rewriteDocument(u.doc, want)
	switch {
	case err != nil:
		u.addError("", fmt.Errorf("writing the object of a sidecar: %w", err))
	case bytes.Equal(changed.Raw(), u.doc.Raw()):
	case mode == v1alpha1.ModeCheck:
		u.addResult(result.Error, "", "this is not what the sidecar adds; run the injection and commit its output")
	default:
		u.changed = changed
	}
}

// withOwnershipMark returns the object with the mark, and with what orchestrators note on the existing object.
func (w *addedObject) withOwnershipMark(there map[string]any) map[string]any {
	out := maps.Clone(w.obj)
	meta, _ := out["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	annotations, _ := meta["annotations"].(map[string]any)
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]any{}
	}
	noted, _ := there["annotations"].(map[string]any)
	for k, v := range noted {
		if isOrchestrators(k) {
			annotations[k] = v
		}
	}
	annotations[sidecar.ObjectAnnotation] = strings.Join(w.sidecars, ",")
	meta["annotations"], out["metadata"] = annotations, meta
	return out
}

// isOrchestrators reports whether an annotation is what an orchestrator such as kustomize notes on the objects that it hands to
// a function.
func isOrchestrators(key string) bool {
	return strings.HasPrefix(key, "internal.config.kubernetes.io/") || strings.HasPrefix(key, "config.kubernetes.io/")
}

// errorResult is an error about the object.
func (w *addedObject) errorResult(message string) result.Result {
	return result.Result{Severity: result.Error, Message: message, ResourceRef: &result.ResourceRef{
		APIVersion: w.meta.APIVersion, Kind: w.meta.Kind, Name: w.meta.Name, Namespace: w.meta.Namespace}}
}

func compareMeta(a, b manifest.Meta) int {
	return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// withoutItems returns a list without the elements at some indexes.
func withoutItems(doc *manifest.Document, drop []int) (*manifest.Document, error) {
	obj, err := doc.Object()
	if err != nil {
		return nil, err
	}
	items, _ := obj["items"].([]any)
	rest := []any{}
	for i, item := range items {
		if !slices.Contains(drop, i) {
			rest = append(rest, item)
		}
	}
	obj["items"] = rest
	return doc.With(obj)
}
