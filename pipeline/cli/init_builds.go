// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build/discover"
	"github.com/prerig/prerig/pipeline/cli/policy"
	"github.com/prerig/prerig/pipeline/cli/scaffold"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/source/dir"
	"github.com/prerig/prerig/pipeline/source/git"
	sourcetree "github.com/prerig/prerig/pipeline/source/tree"
)

// allBuilds and usualBuilds are values of --builds.
const (
	allBuilds   = "all"
	usualBuilds = "usual"
)

// inspection is what init has found in a repository.
type inspection struct {
	files   *sourcetree.Tree
	options discover.Options
	builds  []discover.Build // in or below the directory of the manifests
}

// inspect finds the builds of the repository that the command runs in. The result is nil outside of one.
func (in *initRun) inspect() (*inspection, error) {
	if in.repository == nil || in.inspected != nil {
		return in.inspected, nil
	}
	local, err := git.OpenLocal(in.repository.root)
	if err != nil {
		return nil, err
	}
	ignored, err := local.Ignored()
	if err != nil {
		return nil, err
	}
	kubernetes, err := gate.KubernetesMinor(in.kubernetes)
	if err != nil {
		return nil, err
	}
	found := &inspection{options: discover.Options{KubeVersion: kubernetes + ".0", PolicyName: policy.FileName}}
	for _, one := range in.repository.urls {
		found.options.URLs = append(found.options.URLs, withoutCredentials(one))
	}
	if found.files, err = dir.ReadExcept(in.repository.root, sourcetree.Limits{}, ignored); err != nil {
		return nil, err
	}
	all, err := discover.Builds(found.view(), found.options)
	if err != nil {
		return nil, err
	}
	at, err := in.repository.pathFromRoot(in.dir)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		if at == "." || one.Path == at || strings.HasPrefix(one.Path, at+"/") {
			found.builds = append(found.builds, one)
		}
	}
	if len(found.builds) == 0 && at != "." { // a directory that another build reads
		one, ok, err := discover.At(found.view(), at, found.options)
		if err != nil {
			return nil, err
		}
		if ok {
			found.builds = append(found.builds, one)
		}
	}
	in.inspected = found
	return found, nil
}

func (f *inspection) view() sourcetree.Reader {
	return sourcetree.NewView(f.files, sourcetree.Limits{})
}

// usual returns the builds that get a pipeline unless others are chosen: those that a cluster starts with, or without
// any all but single files of manifests beside others, as most are no part of what a cluster applies.
func (f *inspection) usual() []discover.Build {
	isEntry := func(b discover.Build) bool { return b.Entry }
	hasEntry := slices.ContainsFunc(f.builds, isEntry)
	var out []discover.Build
	for _, one := range f.builds {
		if !one.Entry && (hasEntry || one.File) {
			continue
		}
		out = append(out, one)
	}
	return out
}

// choose returns the builds that are named by directories or patterns.
func (f *inspection) choose(names []string) ([]discover.Build, error) {
	if len(names) == 0 {
		names = []string{usualBuilds}
	}
	chosen := map[string]bool{}
	for _, name := range names {
		some, err := f.matching(name)
		if err != nil {
			return nil, err
		}
		for _, one := range some {
			chosen[one.Path] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(f.builds), func(b discover.Build) bool { return !chosen[b.Path] }), nil
}

// matching returns the builds that one name means.
func (f *inspection) matching(name string) (out []discover.Build, err error) {
	switch name {
	case usualBuilds:
		return f.usual(), nil
	case allBuilds:
		return f.builds, nil
	}
	pattern := path.Clean(filepath.ToSlash(name))
	var known []string
	for _, one := range f.builds {
		known = append(known, one.Path)
		if ok, err := path.Match(pattern, one.Path); err != nil {
			return nil, fmt.Errorf("--builds %s is not a valid pattern: %w", name, err)
		} else if ok {
			out = append(out, one)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	one, ok, err := discover.At(f.view(), pattern, f.options)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("--builds %s: nothing in this repository can be rendered there%s", name, suggestNames(pattern, known))
	}
	f.builds = append(f.builds, one)
	return []discover.Build{one}, nil
}

// buildNouns are the nouns for builds in the order in which they are counted, as singular and plural.
var buildNouns = []struct {
	kind      discover.Kind
	isFile    bool
	one, many string
}{
	{discover.FluxCluster, false, "Flux cluster", "Flux clusters"},
	{discover.Kustomization, false, "kustomization", "kustomizations"},
	{discover.Chart, false, "chart", "charts"},
	{discover.Manifests, false, "directory of manifests", "directories of manifests"},
	{discover.Manifests, true, "file of manifests", "files of manifests"},
}

// describeBuilds counts builds by their kinds.
func describeBuilds(builds []discover.Build) string {
	var parts []string
	for _, noun := range buildNouns {
		n := 0
		for _, one := range builds {
			if one.Kind == noun.kind && one.File == noun.isFile {
				n++
			}
		}
		switch {
		case n == 1:
			parts = append(parts, "1 "+noun.one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, noun.many))
		}
	}
	return strings.Join(parts, ", ")
}

// shownBuilds is how many builds a list shows.
const shownBuilds = 20

// listBuilds lists the builds for a question, the usual ones marked.
func (f *inspection) listBuilds() string {
	usual := f.usual()
	isUsual := func(b discover.Build) bool {
		return slices.ContainsFunc(usual, func(other discover.Build) bool { return other.Path == b.Path })
	}
	sorted := slices.Clone(f.builds)
	slices.SortStableFunc(sorted, func(a, b discover.Build) int { return boolRank(isUsual(a)) - boolRank(isUsual(b)) })
	var b strings.Builder
	for i, one := range sorted {
		if i == shownBuilds {
			fmt.Fprintf(&b, "  and %d more\n", len(sorted)-i)
			break
		}
		mark := " "
		if isUsual(one) {
			mark = "*"
		}
		fmt.Fprintf(&b, "  %s %-13s  %s\n", mark, one.Kind, escapeControlCharacters(one.Path))
	}
	return b.String()
}

func boolRank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// planned is a pipeline that may be written.
type planned struct {
	build    discover.Build
	options  scaffold.PipelineOptions
	file     string
	explicit bool   // the directory is named by the user
	problem  string // why it cannot be rendered
}

// planPipelines returns the pipelines to write, without those whose files already exist.
func (in *initRun) planPipelines(o scaffold.PipelineOptions) ([]planned, error) {
	builds, err := in.chooseBuilds()
	if err != nil {
		return nil, err
	}
	if in.name != "" && len(builds) > 1 {
		return nil, fmt.Errorf("--name %s is for one pipeline, and %s are to get one; choose with DIRECTORY or --builds", in.name, describeBuilds(builds))
	}
	var out []planned
	for _, one := range builds {
		p := planned{build: one, options: o, explicit: len(in.builds) > 0 && !slices.Contains(in.builds, allBuilds) && !slices.Contains(in.builds, usualBuilds)}
		p.options.Build, p.options.Name = one.Spec, one.Name
		switch {
		case in.name != "":
			p.options.Name = in.name
		case len(builds) == 1:
			p.options.Name = cmp.Or(discover.NameOfURL(o.Source), "apps")
		}
		if one.Policy != "" && o.Policy != "" && !in.cmd.Flags().Changed("to") {
			p.options.Policy = one.Policy
		}
		p.file = filepath.Join(in.pipelines, p.options.Name+".yaml")
		if len(builds) > 1 && !in.force && fileExists(p.file) {
			in.kept++
			continue
		}
		out = append(out, p)
	}
	return out, nil
}

// chooseBuilds returns what pipelines are written for. A source that is not this repository is not read.
func (in *initRun) chooseBuilds() ([]discover.Build, error) {
	if !in.repository.isSource(in.source) {
		at := filepath.ToSlash(filepath.Clean(in.dir))
		return []discover.Build{{Kind: discover.Manifests, Path: at, Spec: v1alpha1.Build{Path: at}}}, nil
	}
	found, err := in.inspect()
	if err != nil {
		return nil, fmt.Errorf("inspecting the repository: %w", err)
	}
	builds, err := found.choose(in.builds)
	if err == nil && len(builds) == 0 {
		err = fmt.Errorf("nothing to render in %s: it has no kustomizations, charts or manifests; name another directory", in.dir)
	}
	return builds, err
}

// errAllExist is returned if there is nothing left to write.
var errAllExist = errors.New("nothing to write: the policy and all pipelines already exist and are kept; use --force to replace them")
