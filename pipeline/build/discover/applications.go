// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// addOwnURL notes a URL of the repository itself. Spellings of one URL count once.
func (s *survey) addOwnURL(url string) {
	if normal := giturl.Normal(url); s.ownURLs[normal] == "" && len(giturl.Check(url)) == 0 {
		s.ownURLs[normal] = url
	}
}

// addMirrors notes the URLs of Applications, and in charts that make Applications, of repositories with the name of this one.
func (s *survey) addMirrors(o Options) {
	var names []string
	for _, url := range o.URLs {
		names = append(names, NameOfURL(url))
	}
	if len(names) == 0 && o.Directory != "" {
		names = append(names, NameOf(o.Directory))
	}
	add := func(url string) {
		if slices.Contains(names, NameOfURL(url)) {
			s.addOwnURL(url)
		}
	}
	for _, r := range s.releases {
		if r.isApplication() {
			visit(r.object["spec"], func(m map[string]any) {
				if url, _ := m["repoURL"].(string); url != "" {
					add(url)
				}
			})
		}
	}
	for at, d := range s.directories {
		if !d.chart || !s.rendersReleases(at, applicationKind) {
			continue
		}
		for _, text := range s.textsOfChart(at) {
			for _, url := range repositoryURL.FindAllStringSubmatch(text, -1) {
				add(url[0])
			}
		}
	}
}

// repositoryURL matches what may be the URL of a repository in a chart.
var repositoryURL = lazyregexp.New(`(?:https?|ssh)://[^\s"'{}]+|git@[^\s"'{}]+`)

// textsOfChart returns the values and templates of a chart.
func (c *contents) textsOfChart(chart string) (out []string) {
	for _, dir := range []string{chart, path.Join(chart, "templates")} {
		entries, err := c.reader.List(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if text, err := c.reader.Read(e.Path); !e.Dir && err == nil && len(text) <= maxFile {
				out = append(out, string(text))
			}
		}
	}
	return out
}

// isApplication reports whether a release is one of Argo CD.
func (r release) isApplication() bool {
	kind, _ := r.object["kind"].(string)
	return kind == "Application" || kind == "ApplicationSet"
}

// hasApplications reports whether a directory has Applications that no kustomization lists.
func (s *survey) hasApplications(at string) bool {
	return slices.ContainsFunc(s.releases, func(r release) bool { return r.at == at && r.isApplication() && !s.files[r.file] })
}

// singleFiles returns the files of a directory that are builds by themselves: those with Applications beside a kustomization that does
// not list them, such as the first one of an app of apps, and manifests above other builds.
func (s *survey) singleFiles(at string) (out []string) {
	d := s.directories[at]
	switch {
	case s.covered[at] && d.kustomization == nil, s.clusters[at] != "", d.chart:
		return nil
	case d.kustomization != nil:
		for _, r := range s.releases {
			if r.at == at && r.isApplication() && !s.files[r.file] && !slices.Contains(out, r.file) {
				out = append(out, r.file)
			}
		}
	case s.isMixed(at) && !s.isBelowManifests(at):
		for _, name := range d.manifests {
			if !s.files[name] {
				out = append(out, name)
			}
		}
	}
	return out
}

// isMixed reports whether a directory is above other builds, so that what is below it is not all to be applied together. It is asked after
// all that covers directories.
func (s *survey) isMixed(at string) bool {
	if s.mixed == nil {
		s.mixed = map[string]bool{}
		for below, d := range s.directories {
			if !s.covered[below] && !d.chart && d.kustomization == nil {
				continue
			}
			for below != "." {
				below = path.Dir(below)
				s.mixed[below] = true
			}
		}
	}
	return s.mixed[at]
}

// coverApplications marks the directories that Applications, and those of ApplicationSets, are rendered from. Of Applications that
// render each other, such as one that renders the directory of its own file, the topmost directory is a build.
func (s *survey) coverApplications() {
	s.named = s.namesItself()
	rendered := map[string][]string{} // by the directory of the Application
	for _, r := range s.releases {
		if generator := s.asks(r.object); generator != "" {
			eachPath(s, r.object, func(given string, found []string) {
				if variable.MatchString(given) {
					s.claims.add(r, generator, given, found)
				} else {
					s.claims.add(r, generator, "", found)
				}
			})
		} else if r.isApplication() {
			rendered[r.at] = append(rendered[r.at], s.directoriesOf(r.object)...)
		}
	}
	for at, d := range s.directories {
		if d.chart {
			rendered[at] = append(rendered[at], s.directoriesOfChart(at)...)
		}
	}
	within := map[string]map[string]bool{} // what the build of a directory renders, by Applications too
	var all []string
	for _, at := range slices.Sorted(maps.Keys(rendered)) {
		all = append(all, rendered[at]...)
	}
	slices.SortFunc(all, compareDepth)
	all = slices.Compact(all)
	for _, at := range all {
		within[at] = s.renderedBy(at, rendered)
	}
	roots := map[string]bool{}
	for _, at := range all {
		outside := func(from string) bool { return slices.Contains(rendered[from], at) && !within[at][from] }
		fromRoot := func(root string) bool { return within[root][at] }
		if slices.ContainsFunc(slices.Collect(maps.Keys(rendered)), outside) || slices.ContainsFunc(slices.Collect(maps.Keys(roots)), fromRoot) {
			s.covered[at] = true
			continue
		}
		roots[at] = true
	}
}

// namesItself reports whether any Application names the repository by a URL of its remotes. If none does, as in a fork or a mirror, those
// whose paths it has are taken for it.
func (s *survey) namesItself() bool {
	found := false
	for _, r := range s.releases {
		if r.isApplication() {
			visit(r.object["spec"], func(m map[string]any) {
				url, _ := m["repoURL"].(string)
				found = found || url != "" && s.ownURLs[giturl.Normal(url)] != ""
			})
		}
	}
	return found
}

// compareDepth sorts directories before those below them.
func compareDepth(a, b string) int {
	if by := strings.Count(a, "/") - strings.Count(b, "/"); by != 0 {
		return by
	}
	return strings.Compare(a, b)
}

// renderedBy returns the directories that the build of a directory reads, and those that its Applications do.
func (s *survey) renderedBy(at string, rendered map[string][]string) map[string]bool {
	out := map[string]bool{}
	for next := []string{at}; len(next) > 0; next = next[1:] {
		for dir := range s.reach(next[0]) {
			if !out[dir] {
				out[dir] = true
				next = append(next, rendered[dir]...)
			}
		}
	}
	return out
}

var (
	// variable is what an ApplicationSet, or a template, fills in.
	variable = lazyregexp.New(`\{\{[^}]*\}\}`)
	// releasePath is a line of a template with the path of a source.
	releasePath = lazyregexp.New(`(?m)^[ -]*path: *["']?(.*?)["']? *$`)
)

// directoriesOf returns the directories that an Application, or those of an ApplicationSet, are rendered from.
func (s *survey) directoriesOf(o map[string]any) (out []string) {
	eachPath(s, o, func(_ string, found []string) { out = append(out, found...) })
	return out
}

// eachPath calls do with each path of an Application or ApplicationSet, and the directories that it may mean.
func eachPath(s *survey, o map[string]any, do func(given string, found []string)) {
	visit(o["spec"], func(m map[string]any) {
		url, _ := m["repoURL"].(string)
		templated := url == "" || strings.Contains(url, "{{")
		if excluded, _ := m["exclude"].(bool); excluded || s.named && !templated && s.ownURLs[giturl.Normal(url)] == "" {
			return
		}
		given, _ := m["path"].(string)
		found := s.matchDirectories(given)
		if len(found) > 0 && !templated {
			s.addOwnURL(url)
		}
		do(given, found)
	})
}

// directoriesOfChart returns the directories that the Applications of a chart are rendered from, as far as its templates have them.
func (s *survey) directoriesOfChart(chart string) (out []string) {
	if !s.rendersReleases(chart, applicationKind) {
		return nil
	}
	entries, err := s.reader.List(path.Join(chart, "templates"))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		text, err := s.reader.Read(e.Path)
		if e.Dir || err != nil || !applicationKind.MatchString(string(text)) {
			continue
		}
		for _, line := range releasePath.FindAllStringSubmatch(string(text), -1) {
			out = append(out, s.matchDirectories(line[1])...)
		}
	}
	return out
}

// matchDirectories returns the directories that a path means: with the variables and wildcards of an ApplicationSet, all that it could
// mean. One that names files means their directories. The root, and what begins with a variable, could be anything.
func (c *contents) matchDirectories(given string) (out []string) {
	pattern := path.Clean(strings.TrimPrefix(variable.ReplaceAllString(given, "*"), "/"))
	if given == "" || pattern == "." || strings.HasPrefix(pattern, "*") {
		return nil
	}
	if !strings.ContainsAny(pattern, "*?[") {
		if pattern = path.Clean(pattern); c.directories[pattern] != nil {
			out = append(out, pattern)
		}
		return out
	}
	matching, err := regexp.Compile("^" + globReplacer.Replace(regexp.QuoteMeta(pattern)) + "$")
	if err != nil {
		return nil
	}
	files := path.Ext(pattern) != ""
	for _, at := range c.paths() {
		switch {
		case matching.MatchString(at), files && matching.MatchString(path.Join(at, path.Base(pattern))) && c.hasFile(at, path.Base(pattern)):
			out = append(out, at)
		}
	}
	return out
}

// globReplacer makes a regular expression of a quoted pattern.
var globReplacer = strings.NewReplacer(`\*\*`, ".*", `\*`, "[^/]*", `\?`, "[^/]")

// hasFile reports whether a directory has a file, which may be a pattern.
func (c *contents) hasFile(at, pattern string) bool {
	entries, err := c.reader.List(at)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if ok, err := path.Match(pattern, path.Base(e.Path)); ok && err == nil && !e.Dir {
			return true
		}
	}
	return false
}
