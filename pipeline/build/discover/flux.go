// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render/artifact"
)

// fluxSync is what the operator of Flux makes the first Kustomization of a cluster from: spec.sync of a FluxInstance, or the values
// of a chart that makes one.
type fluxSync struct{ at, path, source string }

// readFluxSync notes what a file has for the operator of Flux. The values of the chart flux-instance may be a file of their own.
func (c *contents) readFluxSync(at string, text []byte, docs []*manifest.Document) {
	if !bytes.Contains(text, []byte("sync:")) || !bytes.Contains(text, []byte("nstance")) {
		return
	}
	for _, doc := range docs {
		o, err := doc.Object()
		if err != nil {
			continue
		}
		meta, _ := o["metadata"].(map[string]any)
		namespace, _ := meta["namespace"].(string)
		var sync map[string]any
		switch kind, _ := o["kind"].(string); kind {
		case "FluxInstance":
			sync = child(o, "spec", "sync")
		case "HelmRelease":
			sync = child(o, "spec", "values", "instance", "sync")
		case "":
			sync = child(o, "instance", "sync")
		}
		given, _ := sync["path"].(string)
		name, _ := sync["name"].(string)
		if given != "" {
			namespace = cmp.Or(namespace, fluxNamespace)
			c.syncs = append(c.syncs, fluxSync{at, given, namespace + "/" + cmp.Or(name, namespace)})
		}
	}
}

// fluxNamespace is where Flux is usually installed.
var fluxNamespace, _, _ = strings.Cut(v1alpha1.DefaultFluxSource, "/")

func child(o map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		o, _ = o[key].(map[string]any)
	}
	return o
}

// locate returns the directory that a path in the source of a Kustomization means: one of the repository, or of an artifact of a part of
// it that the Kustomization itself is in. It is "" for a path in another source.
func (c *contents) locate(from, given string) string {
	given = path.Join(".", strings.TrimPrefix(given, "/"))
	if c.directories[given] != nil {
		return given
	}
	for root := from; root != "."; root = path.Dir(root) {
		if at := path.Join(root, given); c.directories[at] != nil {
			return at
		}
	}
	return ""
}

// coverFlux finds the clusters of Flux: the directories that the operator of Flux starts with; those that a Kustomization in or below them
// names as its own path, as flux bootstrap writes it; and those whose build has Kustomizations that no other one builds. What
// Kustomizations build, and all below it, is no build of its own.
func (s *survey) coverFlux() {
	var built []string
	add := func(at, source string) {
		if at != "" && at != "." && s.clusters[at] == "" {
			s.clusters[at] = source
			built = append(built, at)
		}
	}
	for _, sync := range s.syncs {
		add(s.locate(sync.at, sync.path), sync.source)
	}
	paths := make([]string, len(s.kustomizations))
	sources := make([]string, len(s.kustomizations))
	for i, k := range s.kustomizations {
		given, source := fluxPath(k.object)
		if made := artifactOf(s, k); made != nil {
			paths[i], sources[i] = made.locate(given), made.source
			built = append(built, made.directories()...)
			if paths[i] != "" {
				built = append(built, paths[i])
			}
			continue
		}
		paths[i], sources[i] = locateIn(s, k, given), source
		if source != "" && isWithin(k.at, paths[i]) {
			add(paths[i], source)
		}
		if paths[i] != "" && paths[i] != "." {
			built = append(built, paths[i])
		}
	}
	parents := s.parents()
	for i, k := range s.kustomizations {
		source := sources[i]
		if paths[i] == "" || source == "" {
			continue // it is in another source
		}
		for _, at := range s.topmost(k, parents) {
			if !slices.ContainsFunc(built, func(one string) bool { return isWithin(at, one) }) {
				add(at, source)
			}
		}
	}
	if len(s.clusters) == 0 {
		return
	}
	for dir := range s.directories {
		if slices.ContainsFunc(built, func(at string) bool { return isWithin(dir, at) }) {
			s.covered[dir] = true
		}
	}
}

// locateIn is locate for the path of a Kustomization, whose artifact may be of a part of the repository.
func locateIn(s *survey, k release, given string) string {
	ref := child(k.object, "spec", "sourceRef")
	kind, _ := ref["kind"].(string)
	if !artifact.HasOwnRoot(kind) {
		return s.locate(k.at, given)
	}
	_, source := fluxPath(k.object)
	name, _ := ref["name"].(string)
	var paths []string
	for _, other := range s.kustomizations {
		at, of := fluxPath(other.object)
		if of == source && child(other.object, "spec", "sourceRef")["kind"] == kind {
			paths = append(paths, at)
		}
	}
	root, known := artifact.Root(s.reader, s.paths(), paths, s.addresses[kind+" "+name])
	given = path.Join(".", strings.TrimPrefix(given, "/"))
	at := path.Join(root, given)
	switch {
	case known && s.directories[at] != nil:
		return at
	case given == ".":
		if unknown := kind + " " + source; !slices.Contains(s.unknown, unknown) {
			s.unknown = append(s.unknown, unknown)
		}
		return ""
	}
	return s.locate(k.at, given)
}

// parents returns the directories whose kustomizations name a file or a directory.
func (c *contents) parents() map[string][]string {
	out := map[string][]string{}
	for _, at := range c.paths() {
		k := c.directories[at].kustomization
		if k == nil {
			continue
		}
		for _, ref := range slices.Concat(k.Resources, k.Bases, k.Components) {
			name := path.Join(at, ref)
			out[name] = append(out[name], at)
		}
	}
	return out
}

// topmost returns the directories whose builds have a Kustomization and that are in no other build: a kustomization may set its namespace
// and more.
func (s *survey) topmost(k release, parents map[string][]string) (out []string) {
	next := parents[k.file]
	if len(next) == 0 {
		next = []string{k.at}
	}
	seen := map[string]bool{}
	for ; len(next) > 0; next = next[1:] {
		at := next[0]
		if seen[at] {
			continue
		}
		seen[at] = true
		if len(parents[at]) == 0 {
			out = append(out, at)
		}
		next = slices.Concat(next, parents[at])
	}
	return out
}

// isWithin reports whether a directory is another one or below it.
func isWithin(dir, other string) bool {
	return other != "" && (dir == other || strings.HasPrefix(dir, other+"/"))
}

// fluxPath returns the path that a Kustomization builds, and NAMESPACE/NAME of its source, "" for one without a name. A kustomization may
// set the namespace; then the usual one is taken.
func fluxPath(k map[string]any) (given, source string) {
	spec, _ := k["spec"].(map[string]any)
	ref, _ := spec["sourceRef"].(map[string]any)
	meta, _ := k["metadata"].(map[string]any)
	given, _ = spec["path"].(string)
	name, _ := ref["name"].(string)
	namespace, _ := ref["namespace"].(string)
	own, _ := meta["namespace"].(string)
	if name == "" {
		return given, ""
	}
	return given, cmp.Or(namespace, own, fluxNamespace) + "/" + name
}
