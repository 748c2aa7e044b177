// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/pipeline/render/artifact"
	"github.com/prerig/prerig/pipeline/render/engine/flux"
	"github.com/prerig/prerig/pipeline/render/engine/release"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// maxArtifactDepth bounds artifacts that are copied from artifacts.
const maxArtifactDepth = 5

// waitingKustomization is one that builds an artifact whose generator is not known yet: it is followed when all else is built.
type waitingKustomization struct {
	unit *fluxUnit
	item fn.Item
}

// leftError is why an artifact cannot be composed of the tree, where no error is the reason.
type leftError struct{ reason string }

func (e *leftError) Error() string { return e.reason }

// fluxArtifacts composes the ExternalArtifacts of a run.
type fluxArtifacts struct{ *fluxRun }

// generatorOf returns the generator of an artifact among the objects, nil if it is not known.
func (r fluxArtifacts) generatorOf(namespace, name string) (*artifact.Generator, error) {
	var keys []fluxObject
	for key := range r.objects {
		if key.kind == artifact.Kind && (key.namespace == namespace || key.namespace == "") {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b fluxObject) int { return cmp.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name) })
	for _, key := range keys {
		g, err := artifact.Read(r.objects[key].Value, namespace)
		if err != nil {
			return nil, err
		}
		if g.Makes(name) {
			return g, nil
		}
	}
	return nil, nil
}

// open returns the files of an ExternalArtifact. A leftError is the reason why only the cluster has them.
func (r fluxArtifacts) open(namespace, name string, depth int) (tree.Reader, error) {
	g, err := r.generatorOf(namespace, name)
	switch {
	case err != nil:
		return nil, err
	case g == nil:
		return nil, &leftError{"no ArtifactGenerator among the objects of the tree makes it"}
	case g.Disabled:
		return nil, &leftError{"its ArtifactGenerator " + g.Name + " is disabled, so that only the cluster knows what it has"}
	case depth > maxArtifactDepth:
		return nil, fmt.Errorf("it is copied from artifacts more than %d below each other", maxArtifactDepth)
	}
	guessed := false
	files, err := g.Open(name, func(s artifact.Source) (tree.Reader, error) {
		files, isGuess, err := r.openSource(s, depth)
		guessed = guessed || isGuess
		return files, err
	}, r.w.files)
	if errors.Is(err, artifact.ErrNotMade) || guessed && err != nil {
		return nil, &leftError{fmt.Sprintf("its ArtifactGenerator %s: %v", g.Name, err)}
	}
	if left := (*leftError)(nil); errors.As(err, &left) {
		return nil, &leftError{"its ArtifactGenerator " + g.Name + " copies from " + left.reason}
	}
	if err != nil {
		return nil, fmt.Errorf("ArtifactGenerator %s: %w", g.Name, err)
	}
	return flux.NewGenerated(files), nil
}

// openSource returns the files of a source of a generator. In a review, one that is not among the objects is taken for this source.
func (r fluxArtifacts) openSource(s artifact.Source, depth int) (files tree.Reader, guessed bool, err error) {
	key := s.Namespace + "/" + s.Name
	object := r.objects[fluxObject{s.Kind, s.Namespace, s.Name}]
	switch {
	case s.Kind == artifact.ExternalKind:
		files, err = r.open(s.Namespace, s.Name, depth+1)
		return files, false, err
	case key == r.w.request.Flux.Source:
		return r.filesOf(key), false, nil
	case object == nil && r.w.request.Review:
		return r.filesOf(key), true, nil
	case object == nil:
		return nil, false, &leftError{s.String() + ", which is not among the objects of the tree; if it is this source, name it in spec.build.flux.source"}
	case s.Kind != "GitRepository":
		return nil, false, &leftError{s.String() + ", which is not this source"}
	}
	root, err := r.set.FindRepository(object)
	if err != nil {
		return nil, false, &leftError{s.String() + ": " + err.Error()}
	}
	files = r.filesOf(key)
	if root != "." && root != "" {
		files = tree.Below{Reader: files, Root: root}
	}
	return files, false, nil
}

// waits reports whether a Kustomization builds an artifact whose generator may still come.
func (r fluxArtifacts) waits(k *release.Object) bool {
	spec, _ := k.Value["spec"].(map[string]any)
	ref, _ := spec["sourceRef"].(map[string]any)
	name, _ := ref["name"].(string)
	if ref["kind"] != artifact.ExternalKind || r.late {
		return false
	}
	namespace, _ := ref["namespace"].(string)
	g, err := r.generatorOf(cmp.Or(namespace, k.Ref().Namespace), name)
	return err == nil && g == nil
}

// followWaiting follows the Kustomizations that wait, and reports whether there were any.
func (r fluxArtifacts) followWaiting() bool {
	waiting := r.waiting
	r.waiting, r.late = nil, true
	for _, one := range waiting {
		kept, err := r.followKustomizations(one.unit, []fn.Item{one.item})
		switch {
		case err != nil:
			r.failUnit(one.unit, err)
		case !r.w.request.Review: // of which it is among the items already
			one.unit.items = append(one.unit.items, kept...)
		}
	}
	return len(waiting) > 0
}

// artifactPrefix begins the names of the directories that artifacts are mounted at for charts.
const artifactPrefix = ".prerig-artifact-"

// mountChart mounts an artifact among files, and returns the root of it and the directory of the chart in it.
func (r fluxArtifacts) mountChart(to *tree.Mounts, namespace, name string) (root, chart string, err error) {
	files, err := r.open(namespace, name, 0)
	if err != nil {
		return "", "", err
	}
	root = artifactPrefix + namespace + "-" + name
	to.Add(root, files)
	list, err := files.List(".")
	if err != nil {
		return "", "", err
	}
	for _, one := range list {
		if _, err := files.Lookup(path.Join(one.Path, "Chart.yaml")); err == nil {
			return root, path.Join(root, one.Path), nil
		}
	}
	return "", "", errors.New("it has no directory with a Chart.yaml, as Helm expects of an archive")
}

// referredKindsOfFlux are the kinds of objects that Kustomizations and releases refer to.
var referredKindsOfFlux = slices.Concat(referredKinds, []string{flux.InputProviderKind, artifact.Kind})

// artifactOf returns the files as Flux has them when it builds a unit.
func (r fluxArtifacts) artifactOf(unit *fluxUnit) tree.Reader {
	switch {
	case unit.files != nil:
		return unit.files
	case unit.k == nil:
		return r.filesOf(r.w.request.Flux.Source)
	}
	ref := unit.k.Spec.SourceRef
	return r.filesOf(dependencyKey(unit.k, ref.Namespace, ref.Name))
}

// filesOf returns the tree without the files that a GitRepository ignores, by NAMESPACE/NAME.
func (r fluxArtifacts) filesOf(key string) tree.Reader {
	root := "."
	namespace, name, _ := strings.Cut(key, "/")
	object := r.objects[fluxObject{"GitRepository", namespace, name}]
	if object == nil {
		return flux.NewArtifact(r.w.files, root, "")
	}
	if key != r.w.request.Flux.Source {
		if found, err := r.set.FindRepository(object); err == nil {
			root = found
		}
	}
	ignore := ""
	if spec, ok := object.Value["spec"].(map[string]any); ok {
		ignore, _ = spec["ignore"].(string)
	}
	return flux.NewArtifact(r.w.files, root, ignore)
}
