// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
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
	// Kind is what was found at Path, the directory in the repository, or a file of manifests; "." for its root.
	Kind Kind
	Path string
	// Name is a valid name of a pipeline, which no other build of the repository has.
	Name string
	// Spec is the build of the pipeline.
	Spec v1alpha1.Build
	// File reports whether Path is one file of manifests, beside other builds.
	File bool
	// Entry reports whether a cluster starts with it: with a cluster of Flux, or with Applications of Argo CD.
	Entry bool
	// Loose reports that no Application or Kustomization leads to the build, in a repository that deploys itself with them: no cluster
	// may apply it. LeftOut reports that it has Applications at or below a kustomization that lists others, and is not deployed.
	Loose, LeftOut bool
	// Maybe are the sources of Flux whose artifacts may have the build, as the files do not tell of which directory they are.
	Maybe []string
	// Untouched reports that the build reads no file that differs between both ends; see BothEnds.
	Untouched bool
	// Claims are the ApplicationSets that deploy the directory, where only Argo CD knows to which clusters.
	Claims []Claim
	// Policy is the path of the injection policy that applies to the directory: the nearest file of Options.PolicyName in it or above
	// it. It is empty without one.
	Policy string
}

// Claim is an ApplicationSet, as NAMESPACE/NAME, whose generator asks a server. Pattern is its path with parameters that may mean the
// directory, "" if the path has no parameters, or only those of directories.
type Claim struct{ Set, Generator, Pattern string }

// Options are what a repository does not contain.
type Options struct {
	// KubeVersion is the version of Kubernetes that charts are rendered for, such as 1.34.0.
	KubeVersion string
	// Impure is what functions of charts with varying results do; the default is that of pipelines.
	Impure v1alpha1.HelmImpure
	// PolicyName is the name of the file with the policy of the directories next to and below it.
	PolicyName string
	// URLs are those of the repository itself, as Applications may name it. Applications that name another one of the same name, as
	// a mirror in the cluster or a fork, are taken for it, too; Directory is its name where it has no URL.
	URLs      []string
	Directory string
}

// Builds returns the builds of a repository, by their paths. Files that cannot be read as YAML are no builds, and no errors: the
// build that reads them reports them.
func Builds(r tree.Reader, o Options) ([]Build, error) {
	s, err := newSurvey(r, o)
	if err != nil {
		return nil, err
	}
	return s.builds(o), nil
}

// BothEnds returns the builds of a repository before and after a change. What another build reads at one end is no build at the other
// one: a directory that is only no longer referred to is not deployed by that. changed are the paths of the files that differ.
func BothEnds(before, after tree.Reader, changed []string, o Options) (first, second []Build, err error) {
	one, err := newSurvey(before, o)
	if err != nil {
		return nil, nil, err
	}
	other, err := newSurvey(after, o)
	if err != nil {
		return nil, nil, err
	}
	shareCovered(one, other)
	shareCovered(other, one)
	shareClusters(one, other)
	shareClusters(other, one)
	first, second = one.builds(o), other.builds(o)
	markUntouched(one, first, changed)
	markUntouched(other, second, changed)
	return first, second, nil
}

// shareCovered marks what another survey has marked.
func shareCovered(s, other *survey) {
	maps.Copy(s.covered, other.covered)
	maps.Copy(s.files, other.files)
	maps.Copy(s.ownURLs, other.ownURLs)
}

// shareClusters takes a directory for a cluster of Flux that is one in another survey, if it still has Kustomizations: Flux keeps what it
// has applied if a path leads nowhere, and reports an error.
func shareClusters(s, other *survey) {
	for at, source := range other.clusters {
		hasKustomization := slices.ContainsFunc(s.kustomizations, func(k release) bool { return isWithin(k.at, at) })
		if s.clusters[at] == "" && s.directories[at] != nil && hasKustomization {
			s.clusters[at] = source
		}
	}
}

// builds returns the builds that were found.
func (s *survey) builds(o Options) (out []Build) {
	for _, at := range s.paths() {
		if kind := s.kindOf(at); kind != "" {
			out = append(out, s.buildOf(kind, at, o))
		}
		for _, name := range s.singleFiles(at) {
			one := s.buildOf(Manifests, name, o)
			one.File = true
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b Build) int { return strings.Compare(a.Path, b.Path) })
	nameBuilds(out, o.URLs)
	markLoose(s, out)
	return out
}

// markLoose marks the builds that no cluster starts with, if any starts with another one, and those that are left out.
func markLoose(s *survey, builds []Build) {
	deploysItself := slices.ContainsFunc(builds, func(b Build) bool {
		return b.Kind == FluxCluster || b.Entry && len(s.ownURLs) > 0
	})
	for i, b := range builds {
		switch {
		case b.Kind == FluxCluster:
		case !b.Entry:
			builds[i].Claims = s.claims.of(b.Path)
			isLed := !deploysItself || len(builds[i].Claims) > 0
			builds[i].Loose = !isLed && len(s.unknown) == 0
			if !isLed {
				builds[i].Maybe = s.unknown
			}
		case b.Kind == Manifests:
			builds[i].LeftOut = isLeftOut(s, b.Path)
		}
	}
}

// isLeftOut reports whether a directory, or one above a path, has a kustomization with Applications.
func isLeftOut(s *survey, at string) bool {
	for {
		if d := s.directories[at]; d != nil && d.kustomization != nil && s.reachesRelease(at, release.isApplication) {
			return true
		}
		if at == "." {
			return false
		}
		at = path.Dir(at)
	}
}

// At returns the build of a directory, also if another build reads it. It returns false for a directory that is none.
func At(r tree.Reader, at string, o Options) (Build, bool, error) {
	s, err := newSurvey(r, o)
	if err != nil {
		return Build{}, false, err
	}
	d := s.directories[at]
	var kind Kind
	switch {
	case d == nil:
		return Build{}, false, nil
	case s.clusters[at] != "":
		kind = FluxCluster
	case d.chart:
		kind = Chart
	case d.kustomization != nil:
		kind = Kustomization
	case s.hasManifestsBelow(at):
		kind = Manifests
	default:
		return Build{}, false, nil
	}
	out := []Build{s.buildOf(kind, at, o)}
	nameBuilds(out, o.URLs)
	return out[0], true, nil
}

// newSurvey looks at a repository.
func newSurvey(r tree.Reader, o Options) (*survey, error) {
	found, err := readContents(r, o.PolicyName)
	if err != nil {
		return nil, err
	}
	s := &survey{contents: found, covered: map[string]bool{}, files: map[string]bool{}, ownURLs: map[string]string{}, clusters: map[string]string{}, claims: claims{}}
	for _, url := range o.URLs {
		s.addOwnURL(url)
	}
	s.addMirrors(o)
	s.coverReferences()
	s.coverApplications()
	s.coverFlux()
	return s, nil
}

// buildOf describes the build of a directory.
func (s *survey) buildOf(kind Kind, at string, o Options) Build {
	return Build{Kind: kind, Path: at, Spec: s.specOf(kind, at, o), Entry: s.isEntry(kind, at), Policy: s.policyOf(at)}
}

// isEntry reports whether a cluster starts with a build.
func (s *survey) isEntry(kind Kind, at string) bool {
	if kind == Chart {
		return s.rendersReleases(at, applicationKind)
	}
	return kind == FluxCluster || s.reachesRelease(at, func(r release) bool { return r.object["kind"] != "HelmRelease" })
}

// reachesRelease reports whether the build of a directory or a file has a release.
func (s *survey) reachesRelease(at string, wanted func(release) bool) bool {
	return slices.ContainsFunc(s.releasesOf(at), wanted)
}

// releasesOf returns the releases among the objects of the build of a directory or a file. A kustomization leaves out files that no
// kustomization lists.
func (s *survey) releasesOf(at string) []release {
	reached := s.reach(at)
	return slices.DeleteFunc(slices.Clone(s.releases), func(r release) bool {
		d := s.directories[r.at]
		isListed := d == nil || d.kustomization == nil || s.files[r.file]
		return r.file != at && !(reached[r.at] && isListed)
	})
}

// hasManifestsBelow reports whether a directory or one below it has objects.
func (c *contents) hasManifestsBelow(at string) bool {
	d := c.directories[at]
	return len(d.manifests) > 0 || slices.ContainsFunc(d.children, c.hasManifestsBelow)
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
	case d.hasOwnManifests(s.files) && !s.isBelowManifests(at) && !s.isMixed(at):
		return Manifests
	}
	return ""
}

// isBelowManifests reports whether a directory is part of the build of one above it. Plain manifests with charts or kustomizations below
// them are not one build with what else is there.
func (s *survey) isBelowManifests(at string) bool {
	for up := at; up != "."; {
		up = path.Dir(up)
		d := s.directories[up]
		if d == nil {
			continue
		}
		if d.kustomization != nil {
			return !s.hasApplications(at) // which a kustomization that does not list them leaves to others
		}
		if d.chart || s.covered[up] || d.hasOwnManifests(s.files) && !s.isMixed(up) {
			return true
		}
	}
	return false
}

// hasOwnManifests reports whether a directory has manifests that no kustomization lists.
func (d *directory) hasOwnManifests(listed map[string]bool) bool {
	return slices.ContainsFunc(d.manifests, func(name string) bool { return !listed[name] })
}

// specOf returns how a directory is built.
func (s *survey) specOf(kind Kind, at string, o Options) v1alpha1.Build {
	switch kind {
	case FluxCluster:
		build := v1alpha1.Build{Flux: &v1alpha1.Flux{Path: at, Source: s.clusters[at]}}
		if len(s.releases) > 0 {
			build.Releases = &v1alpha1.Releases{
				KubeVersion: o.KubeVersion, Repositories: s.repositories(), Impure: o.Impure, Lookup: v1alpha1.ImpureEmpty,
			}
		}
		return build
	case Chart:
		name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(path.Base(at)), "-"), "-")
		if at == "." || name == "" {
			name = "chart"
		}
		name = strings.TrimRight(name[:min(len(name), maxReleaseName)], "-")
		build := v1alpha1.Build{Helm: &v1alpha1.Helm{
			Chart: at, ReleaseName: name, Namespace: "default", KubeVersion: o.KubeVersion, Impure: o.Impure, Lookup: v1alpha1.ImpureEmpty,
		}}
		if s.rendersReleases(at, releaseKind) {
			build.Releases = s.releaseSettings(at, o)
		}
		return build
	}
	build := v1alpha1.Build{Path: at}
	if s.rendersCharts(at) {
		build.HelmCharts = &v1alpha1.HelmCharts{KubeVersion: o.KubeVersion, Impure: o.Impure, Lookup: v1alpha1.ImpureEmpty}
	}
	if s.reachesRelease(at, func(release) bool { return true }) {
		build.Releases = s.releaseSettings(at, o)
	}
	return build
}

// rendersCharts reports whether a kustomization that the build of a directory reads names charts, or generators, which may.
func (c *contents) rendersCharts(at string) bool {
	for dir := range c.reach(at) {
		d := c.directories[dir]
		if d != nil && d.kustomization != nil && len(d.kustomization.HelmCharts)+len(d.kustomization.HelmInflator)+len(d.kustomization.Generators) > 0 {
			return true
		}
	}
	return false
}

// releaseSettings returns how the releases among the objects of a directory are rendered.
func (s *survey) releaseSettings(at string, o Options) *v1alpha1.Releases {
	return &v1alpha1.Releases{
		KubeVersion: o.KubeVersion, Namespace: "default", PerApplication: true, Objects: s.sourcesOf(at), Repositories: s.repositories(),
		Impure: o.Impure, Lookup: v1alpha1.ImpureEmpty,
	}
}

// rendersReleases reports whether the templates of a chart are meant to make releases of some kinds, as in an app of apps.
func (c *contents) rendersReleases(chart string, kinds *lazyregexp.Regexp) bool {
	entries, err := c.reader.List(path.Join(chart, "templates"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e tree.Info) bool {
		if e.Dir {
			return false
		}
		text, err := c.reader.Read(e.Path)
		return err == nil && kinds.MatchString(string(text))
	})
}

// releaseKind is the line of a template that makes a release, and applicationKind that of one of Argo CD.
var (
	releaseKind     = lazyregexp.New(`(?m)^kind: *(Application|ApplicationSet|HelmRelease)\s*$`)
	applicationKind = lazyregexp.New(`(?m)^kind: *(Application|ApplicationSet)\s*$`)
)

// repositories maps the repositories of Applications that the tree has the paths of to the tree itself.
func (s *survey) repositories() (out []v1alpha1.ReleaseRepository) {
	for _, url := range slices.Sorted(maps.Values(s.ownURLs)) {
		out = append(out, v1alpha1.ReleaseRepository{URL: url, Path: "."})
	}
	return out
}

// policyOf returns the nearest policy of a directory.
func (c *contents) policyOf(at string) string {
	for {
		if d := c.directories[at]; d != nil && d.policy {
			return path.Join(at, c.policyName)
		}
		if at == "." {
			return ""
		}
		at = path.Dir(at)
	}
}
