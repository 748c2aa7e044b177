// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/source/content"
)

// markUntouched marks the builds that read none of the changed files: what they render is the same at both ends. Builds with
// releases, and the clusters of Flux, are never marked, as only their render tells what they read.
func markUntouched(s *survey, builds []Build, changed []string) {
	if slices.ContainsFunc(changed, isLock) {
		return
	}
	for i, b := range builds {
		if b.Spec.Flux == nil && b.Spec.Releases == nil {
			builds[i].Untouched = !scopeOf(s, b).hasAny(changed)
		}
	}
}

// isLock reports whether a file may lock what builds load from elsewhere.
func isLock(name string) bool { return strings.Contains(strings.ToLower(path.Base(name)), "lock") }

// scope is what a build may read: more than it does, and never less.
type scope struct {
	s     *survey
	seen  map[string]bool
	paths map[string]bool // files, and directories with all below them
	open  bool            // the paths are not all
}

func scopeOf(s *survey, b Build) *scope {
	c := &scope{s: s, seen: map[string]bool{}, paths: map[string]bool{}}
	if b.Policy != "" {
		c.paths[b.Policy] = true
	}
	if b.File {
		c.paths[b.Path] = true
		return c
	}
	if b.Kind == Chart {
		text, err := s.reader.Read(path.Join(b.Path, "Chart.yaml"))
		c.open = err != nil || strings.Contains(string(text), "file:")
	}
	c.addDirectory(b.Path)
	return c
}

// hasAny reports whether any of some paths may be read.
func (c *scope) hasAny(changed []string) bool {
	return c.open || c.paths["."] || slices.ContainsFunc(changed, func(name string) bool {
		for at := name; at != "."; at = path.Dir(at) {
			if c.paths[at] {
				return true
			}
		}
		return false
	})
}

// addDirectory adds what the build of a directory may read.
func (c *scope) addDirectory(at string) {
	d := c.s.directories[at]
	if d == nil || d.kustomization == nil {
		c.paths[at] = true
		return
	}
	if c.seen[at] {
		return
	}
	c.seen[at] = true
	for _, name := range content.KustomizationNames() {
		file := path.Join(at, name)
		c.paths[file] = true
		if text, err := c.s.reader.Read(file); err == nil {
			c.addNamed(at, text, len(d.kustomization.HelmCharts)+len(d.kustomization.HelmInflator) > 0)
		}
	}
}

// addNamed adds what a kustomization in a directory may mean by its texts: any of them may be a path. In the files of generators and of
// transformers, paths are relative to the directory, too. Charts are in a directory that is not always named.
func (c *scope) addNamed(at string, text []byte, charts bool) {
	var value map[string]any
	if err := yaml.Unmarshal(text, &value); err != nil {
		c.paths[at] = true // no other file matters, as its build fails by this one
		return
	}
	if charts {
		c.paths[path.Join(at, "charts")] = true
	}
	visitTexts(value, func(given string) {
		for _, one := range possiblePaths(given) {
			name := path.Join(at, one)
			if name == ".." || strings.HasPrefix(name, "../") {
				continue
			}
			d := c.s.directories[name]
			switch {
			case d != nil && d.kustomization != nil && !charts && name != at:
				c.addDirectory(name)
			case d != nil && name == at && !charts:
			default:
				c.paths[name] = true
			}
		}
	})
	for _, field := range []string{"generators", "transformers", "validators"} {
		list, _ := value[field].([]any)
		for _, one := range list {
			name, _ := one.(string)
			file := path.Join(at, name)
			if text, err := c.s.reader.Read(file); name != "" && err == nil && !c.seen[file] {
				c.seen[file] = true
				c.addDocuments(at, text)
			}
		}
	}
}

// addDocuments adds what the file of a generator or a transformer may mean by its texts.
func (c *scope) addDocuments(at string, text []byte) {
	c.paths[path.Join(at, "charts")] = true
	for _, one := range possiblePaths(string(text)) {
		if name := path.Join(at, one); name != at && !strings.HasPrefix(name, "..") {
			c.paths[name] = true
		}
	}
}

// visitTexts calls do with each text in a value, keys included.
func visitTexts(value any, do func(string)) {
	switch v := value.(type) {
	case map[string]any:
		for key, one := range v {
			do(key)
			visitTexts(one, do)
		}
	case []any:
		for _, one := range v {
			visitTexts(one, do)
		}
	case string:
		do(v)
	}
}

// possiblePaths returns the parts of a text that may be paths: all of it, what follows on an equals sign, and its words.
func possiblePaths(text string) []string {
	var out []string
	if !strings.Contains(text, "\n") {
		_, value, _ := strings.Cut(text, "=")
		out = append(out, text, value)
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"',[]{}=:;|>()", r) })
	out = append(out, words...)
	return slices.DeleteFunc(out, func(one string) bool { return one == "" })
}
