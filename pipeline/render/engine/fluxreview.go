// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/artifact"
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
		return artifact.HasOwnRoot(ref.Kind) && r.isPushed(ref.Kind, key)
	}
	if ref.Kind != "GitRepository" && render.CleanPath(k.Spec.Path) == "." {
		return true // which directory that is, artifactRoot decides
	}
	given := render.CleanPath(k.Spec.Path)
	return given != "" && r.isDirectory(r.locate(from, given))
}

// directoryOfOwn returns the directory of the tree that a Kustomization of a unit builds. The root of an artifact that is pushed may be
// any directory; where the tree does not tell which, the Kustomization is left to Flux.
func (r fluxReview) directoryOfOwn(from *fluxUnit, k *flux.Kustomization) (string, error) {
	ref := k.Spec.SourceRef
	if artifact.HasOwnRoot(ref.Kind) {
		key := dependencyKey(k, ref.Namespace, ref.Name)
		root, known := r.artifactRoot(ref.Kind, key)
		at := path.Join(root, render.CleanPath(k.Spec.Path))
		switch {
		case known && r.isDirectory(at):
			return at, nil
		case render.CleanPath(k.Spec.Path) == ".":
			return "", &leftError{fmt.Sprintf("spec.sourceRef names %s %s, and which directory of the repository its artifact has is not in the files", ref.Kind, key)}
		}
	}
	return r.locate(from, k.Spec.Path), nil
}

// artifactRoot returns the directory of the tree that the artifact of a source has, if the tree tells it.
func (r fluxReview) artifactRoot(kind, key string) (root string, known bool) {
	return r.rootBy(kind, key, r.paths[key])
}

// rootBy is artifactRoot with the paths that count.
func (r fluxReview) rootBy(kind, key string, paths []string) (root string, known bool) {
	if r.directories == nil {
		r.directories = []string{"."}
		for i := 0; i < len(r.directories); i++ {
			entries, err := r.w.files.List(r.directories[i])
			if err != nil {
				continue
			}
			for _, one := range entries {
				if one.Dir && !strings.HasPrefix(path.Base(one.Path), ".") {
					r.directories = append(r.directories, one.Path)
				}
			}
		}
	}
	namespace, name, _ := strings.Cut(key, "/")
	url := ""
	if object := r.pushed[fluxObject{kind, namespace, name}]; object != nil {
		spec, _ := object.Value["spec"].(map[string]any)
		url, _ = spec["url"].(string)
	}
	return artifact.Root(r.w.files, r.directories, paths, url)
}

// isPushed reports whether the artifact of a source that is among the objects is of this tree: a command of the tree pushes it, or the tree
// has all of several paths in it, in one place.
func (r fluxReview) isPushed(kind, key string) bool {
	const several = 2
	named := map[string]bool{}
	for _, one := range r.paths[key] {
		named[render.CleanPath(one)] = true
	}
	delete(named, ".")
	paths := r.paths[key]
	if len(named) < several {
		paths = nil // only a command tells then
	}
	_, known := r.rootBy(kind, key, paths)
	return known
}

// notePaths notes the paths by which the Kustomizations among items read their sources, and the addresses of artifacts.
func (r fluxReview) notePaths(from *fluxUnit, items []fn.Item) {
	for _, item := range items {
		meta, _ := item.Doc.Peek()
		if artifact.HasOwnRoot(meta.Kind) {
			if object, err := r.objectOf(item); err == nil {
				r.pushed[fluxObject{meta.Kind, object.Ref().Namespace, object.Ref().Name}] = object
			}
		}
		object, err := r.kustomizationOf(item)
		if err != nil || object == nil {
			continue
		}
		if k, _, err := r.readKustomization(from, object); err == nil && artifact.HasOwnRoot(k.Spec.SourceRef.Kind) {
			key := dependencyKey(k, k.Spec.SourceRef.Namespace, k.Spec.SourceRef.Name)
			r.paths[key] = append(r.paths[key], k.Spec.Path)
		}
	}
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
