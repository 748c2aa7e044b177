// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"cmp"
	"path"
	"slices"

	"github.com/prerig/prerig/pipeline/render/artifact"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// generatedArtifact is an ExternalArtifact that a Kustomization of Flux builds.
type generatedArtifact struct {
	s          *survey
	name       string
	generators []*artifact.Generator // one for each cluster that may make it
	files      *artifact.Files       // nil if no generator can make it
	source     string                // NAMESPACE/NAME of what it is copied from
}

// artifactOf returns the artifact that a Kustomization builds, nil for one that builds something else. Its files are those of the
// repository, as the generator beside the Kustomization copies them, or otherwise the first one.
func artifactOf(s *survey, k release) *generatedArtifact {
	ref := child(k.object, "spec", "sourceRef")
	if ref["kind"] != artifact.ExternalKind {
		return nil
	}
	name, _ := ref["name"].(string)
	namespace, _ := ref["namespace"].(string)
	own, _ := child(k.object, "metadata")["namespace"].(string)
	out := &generatedArtifact{s: s, name: name}
	for _, one := range s.generators {
		given, _ := child(one.object, "metadata")["namespace"].(string)
		given = cmp.Or(given, fluxNamespace)
		g, err := artifact.Read(one.object, given)
		if err != nil || given != cmp.Or(namespace, own, fluxNamespace) || !g.Makes(name) {
			continue
		}
		out.generators = append(out.generators, g)
		files, err := g.Open(name, func(artifact.Source) (tree.Reader, error) { return s.reader, nil }, nil)
		if err != nil || out.files != nil && one.at != k.at {
			continue
		}
		out.files = files
		for _, source := range g.Sources()[:1] {
			out.source = source.Namespace + "/" + source.Name
		}
	}
	return out
}

// locate returns the directory of the repository that a path in the artifact is a copy of, or "".
func (a *generatedArtifact) locate(given string) string {
	if a.files == nil {
		return ""
	}
	for _, at := range a.files.Origins(given) {
		if a.s.directories[at] != nil && at != "." {
			return at
		}
	}
	return ""
}

// directories returns those of the repository that the artifact is made of: no other builds. One that all of the repository is copied to
// has the directories that a Kustomization builds.
func (a *generatedArtifact) directories() (out []string) {
	for _, g := range a.generators {
		for _, pattern := range g.Directories(a.name) {
			for _, at := range a.s.paths() {
				if ok, err := path.Match(pattern, at); ok && err == nil && at != "." {
					out = append(out, at)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
