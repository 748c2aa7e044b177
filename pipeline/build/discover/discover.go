// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Kind is how a repository delivers something.
type Kind string

// The kinds of builds.
const (
	Kustomization Kind = "kustomization"
	Chart         Kind = "chart"
	Manifests     Kind = "manifests"
	FluxCluster   Kind = "Flux cluster"
)

// Build is what a pipeline would render.
type Build struct {
	// Kind is what was found at Path, the directory in the repository; "." for its root.
	Kind Kind
	Path string
	// Name is a valid name of a pipeline, which no other build of the repository has.
	Name string
	// Spec is the build of the pipeline.
	Spec v1alpha1.Build
	// Policy is the path of the injection policy that applies to the directory: the nearest file of Options.PolicyName in it or above
	// it. It is empty without one.
	Policy string
}

// Options are what a repository does not contain.
type Options struct {
	// KubeVersion is the version of Kubernetes that charts are rendered for, such as 1.34.0.
	KubeVersion string
	// PolicyName is the name of the file with the policy of the directories next to and below it.
	PolicyName string
	// URLs are those of the repository itself, as Applications may name it.
	URLs []string
	// Unlocked has the HelmReleases of Flux clusters rendered, whether the repository locks their charts or not.
	Unlocked bool
}

// Builds returns the builds of a repository, by their paths. Files that cannot be read as YAML are no builds, and no errors: the
// build that reads them reports them.
func Builds(r tree.Reader, o Options) ([]Build, error) {
	s := &survey{
		reader: r, policyName: o.PolicyName, directories: map[string]*directory{}, covered: map[string]bool{}, files: map[string]bool{},
		ownURLs: map[string]bool{}, sources: map[string][]string{}, clusters: map[string]string{},
	}
	for _, url := range o.URLs {
		s.ownURLs[url] = true
	}
	if err := s.readDirectory("."); err != nil {
		return nil, fmt.Errorf("looking for builds: %w", err)
	}
	s.coverReferences()
	s.coverFlux()
	var out []Build
	for _, at := range s.paths() {
		kind := s.kindOf(at)
		if kind == "" {
			continue
		}
		out = append(out, Build{Kind: kind, Path: at, Spec: s.specOf(kind, at, o), Policy: s.policyOf(at)})
	}
	nameBuilds(out)
	return out, nil
}

// kindOf returns how a directory is a build, or "" if it is none.
func (s *survey) kindOf(at string) Kind {
	d := s.directories[at]
	switch {
	case s.clusters[at] != "":
		return FluxCluster
	case s.covered[at]:
	case d.chart:
		return Chart
	case d.kustomization != nil:
		if d.kustomization.Kind != "Component" {
			return Kustomization
		}
	case s.hasOwnManifests(d) && !s.isBelowManifests(at):
		return Manifests
	}
	return ""
}

// isBelowManifests reports whether a directory is part of the build of one above it.
func (s *survey) isBelowManifests(at string) bool {
	for up := at; up != "."; {
		up = path.Dir(up)
		d := s.directories[up]
		if d == nil {
			continue
		}
		if d.chart || d.kustomization != nil || s.covered[up] || s.hasOwnManifests(d) {
			return true
		}
	}
	return false
}

// hasOwnManifests reports whether a directory has manifests that no kustomization lists.
func (s *survey) hasOwnManifests(d *directory) bool {
	return slices.ContainsFunc(d.manifests, func(name string) bool { return !s.files[name] })
}

// specOf returns how a directory is built.
func (s *survey) specOf(kind Kind, at string, o Options) v1alpha1.Build {
	if kind == FluxCluster {
		build := v1alpha1.Build{Flux: &v1alpha1.Flux{Path: at, Source: s.clusters[at]}}
		if s.locked || o.Unlocked {
			build.Releases = &v1alpha1.Releases{KubeVersion: o.KubeVersion, Impure: v1alpha1.ImpureEmpty, Lookup: v1alpha1.ImpureEmpty}
		}
		return build
	}
	if kind == Chart {
		name := path.Base(at)
		if at == "." {
			name = "chart"
		}
		build := v1alpha1.Build{Helm: &v1alpha1.Helm{
			Chart: at, ReleaseName: name, Namespace: "default", KubeVersion: o.KubeVersion, Impure: v1alpha1.ImpureEmpty, Lookup: v1alpha1.ImpureEmpty,
		}}
		if s.rendersReleases(at) {
			build.Releases = s.releaseSettings(at, o)
		}
		return build
	}
	build := v1alpha1.Build{Path: at, HelmCharts: &v1alpha1.HelmCharts{KubeVersion: o.KubeVersion, Impure: v1alpha1.ImpureEmpty, Lookup: v1alpha1.ImpureEmpty}}
	if len(s.releases) > 0 {
		build.Releases = s.releaseSettings(at, o)
	}
	return build
}

// releaseSettings returns how the releases among the objects of a directory are rendered.
func (s *survey) releaseSettings(at string, o Options) *v1alpha1.Releases {
	return &v1alpha1.Releases{
		KubeVersion: o.KubeVersion, Namespace: "default", Objects: s.sourcesOf(at), Repositories: s.repositories(),
		Impure: v1alpha1.ImpureEmpty, Lookup: v1alpha1.ImpureEmpty,
	}
}

// rendersReleases reports whether the templates of a chart are meant to make Applications or HelmReleases, as in an app of apps.
func (s *survey) rendersReleases(chart string) bool {
	entries, err := s.reader.List(path.Join(chart, "templates"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e tree.Info) bool {
		if e.Dir {
			return false
		}
		text, err := s.reader.Read(e.Path)
		return err == nil && releaseKind.MatchString(string(text))
	})
}

// releaseKind is the line of a template that makes a release.
var releaseKind = lazyregexp.New(`(?m)^kind: *(Application|ApplicationSet|HelmRelease)\s*$`)

// repositories maps the repositories of Applications that the tree has the paths of to the tree itself.
func (s *survey) repositories() (out []v1alpha1.ReleaseRepository) {
	for _, url := range slices.Sorted(maps.Keys(s.ownURLs)) {
		out = append(out, v1alpha1.ReleaseRepository{URL: url, Path: "."})
	}
	return out
}

// policyOf returns the nearest policy of a directory.
func (s *survey) policyOf(at string) string {
	for {
		if d := s.directories[at]; d != nil && d.policy {
			return path.Join(at, s.policyName)
		}
		if at == "." {
			return ""
		}
		at = path.Dir(at)
	}
}

var notInNames = lazyregexp.New(`[^a-z0-9]+`)

// maxName is the length of the longest name of a pipeline.
const maxName = 63

// nameBuilds names builds by their paths.
func nameBuilds(builds []Build) {
	taken := map[string]bool{}
	for i := range builds {
		name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(builds[i].Path), "-"), "-")
		if len(name) > maxName {
			name = strings.TrimLeft(name[len(name)-maxName:], "-") // the end of a path is more distinctive than its beginning
		}
		name = cmp.Or(name, "repository")
		unique := name
		for n := 2; taken[unique]; n++ {
			suffix := fmt.Sprintf("-%d", n)
			unique = strings.TrimRight(name[:min(len(name), maxName-len(suffix))], "-") + suffix
		}
		taken[unique] = true
		builds[i].Name = unique
	}
}
