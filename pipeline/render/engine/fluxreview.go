// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"path"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/flux"
	"github.com/prerig/prerig/pipeline/render/engine/release"
)

// fluxReview is what a review asks of a run.
type fluxReview struct{ *fluxRun }

// readKustomization reads a Kustomization of a unit. In a review, one without a namespace is in that of what makes it:
// the kustomization that would set it may be above the entry that was found.
func (r fluxReview) readKustomization(from *fluxUnit, object *release.Object) (*flux.Kustomization, result.Results, error) {
	if r.w.request.Review && object.Ref().Namespace == "" && object.Ref().Name != "" {
		namespace, _, _ := strings.Cut(from.key, "/")
		object = inNamespace(object, namespace)
	}
	return flux.ReadKustomization(object)
}

// isOwnSource reports whether a Kustomization of a unit builds files of this tree. In a review that holds for the source
// of the cluster, and for each other one that is not among the objects: it was made by a bootstrap or by an operator of
// Flux, or it is an artifact of a part of the tree. Its path decides then.
func (r fluxReview) isOwnSource(from *fluxUnit, k *flux.Kustomization) bool {
	ref := k.Spec.SourceRef
	key := dependencyKey(k, ref.Namespace, ref.Name)
	if key == r.w.request.Flux.Source {
		return true
	}
	namespace, name, _ := strings.Cut(key, "/")
	if r.objects[fluxObject{ref.Kind, namespace, name}] != nil {
		return false
	}
	given := render.CleanPath(k.Spec.Path)
	return given != "" && r.isDirectory(r.locate(from, given))
}

// locate returns the directory of the tree that a path in an artifact means. The artifact may be of a part of the tree,
// which the directory of the unit is in, as both are in the same artifact.
func (r fluxReview) locate(from *fluxUnit, given string) string {
	given = render.CleanPath(given)
	if !r.w.request.Review || given == "" || r.isDirectory(given) {
		return given
	}
	for root := from.dir; root != "." && root != "/"; root = path.Dir(root) {
		if at := path.Join(root, given); r.isDirectory(at) {
			return at
		}
	}
	return given
}

func (r fluxReview) isDirectory(at string) bool {
	info, err := r.w.files.Lookup(at)
	return err == nil && info.Dir
}

// inNamespace returns an object with a namespace.
func inNamespace(object *release.Object, namespace string) *release.Object {
	value := maps.Clone(object.Value)
	meta, _ := value["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	meta["namespace"] = namespace
	value["metadata"] = meta
	return &release.Object{Value: value, Locate: object.Locate}
}

// describeUnits returns what decides about the objects that leave each unit.
func (r fluxReview) describeUnits() (out []render.Unit) {
	for _, unit := range r.units {
		if unit.k == nil {
			continue
		}
		spec := unit.k.Spec
		one := render.Unit{Name: unit.key, Kind: kustomizev1.KustomizationKind, Suspended: spec.Suspend}
		mirrors := spec.DeletionPolicy == "" || spec.DeletionPolicy == kustomizev1.DeletionPolicyMirrorPrune
		switch {
		case spec.Suspend: // both the reconciliation and the finalizer of kustomize-controller leave everything then
			one.Keeps, one.Outlived = "it is suspended", "it was suspended"
		case !spec.Prune:
			one.Keeps = "its spec.prune is not true"
		}
		switch {
		case spec.Suspend:
		case spec.DeletionPolicy == kustomizev1.DeletionPolicyOrphan:
			one.Outlived = "its spec.deletionPolicy is Orphan"
		case mirrors && !spec.Prune:
			one.Outlived = "its spec.prune is not true"
		}
		out = append(out, one)
	}
	for _, name := range slices.Sorted(maps.Keys(r.left)) {
		if r.byKey[name] == nil {
			out = append(out, render.Unit{Name: name, Kind: kustomizev1.KustomizationKind, Left: r.left[name]})
		}
	}
	return out
}
