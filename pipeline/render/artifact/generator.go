// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Group is the API group of generators, and Kind their kind. ExternalKind is that of what they make.
const (
	Group        = "source.extensions.fluxcd.io"
	Kind         = "ArtifactGenerator"
	ExternalKind = "ExternalArtifact"
)

// Generator is what matters of an ArtifactGenerator.
type Generator struct {
	Namespace, Name string
	// Disabled reports that it makes nothing new: what its artifacts have, only the cluster knows.
	Disabled bool

	spec spec
}

type spec struct {
	Sources     []Source `json:"sources"`
	PathPattern string   `json:"pathPattern"`
	Artifacts   []output `json:"artifacts"`
}

// Source is one that a generator copies from.
type Source struct {
	Alias     string `json:"alias"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// String names a source.
func (s Source) String() string { return s.Kind + " " + s.Namespace + "/" + s.Name }

type output struct {
	Name string     `json:"name"`
	Copy []copyStep `json:"copy"`
}

type copyStep struct {
	From     string   `json:"from"`
	To       string   `json:"to"`
	Exclude  []string `json:"exclude"`
	Strategy string   `json:"strategy"`
}

// Read reads an ArtifactGenerator. Its namespace is that of sources without one.
func Read(object map[string]any, namespace string) (*Generator, error) {
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	g := &Generator{Namespace: namespace}
	g.Name, _ = meta["name"].(string)
	reconciled, _ := annotations[Group+"/reconcile"].(string)
	g.Disabled = strings.EqualFold(reconciled, "disabled")
	text, err := json.Marshal(object["spec"])
	if err == nil {
		err = json.Unmarshal(text, &g.spec)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", Kind, namespace, g.Name, err)
	}
	for i := range g.spec.Sources {
		if g.spec.Sources[i].Namespace == "" {
			g.spec.Sources[i].Namespace = namespace
		}
	}
	return g, nil
}

// Sources returns those that the generator copies from.
func (g *Generator) Sources() []Source { return g.spec.Sources }

// ErrNotMade is the error for an artifact that a generator does not make.
var ErrNotMade = errors.New("the generator makes no such artifact")

// Open returns the files of an artifact. open returns those of a source; beside are the files of remote bases, which kustomizations of
// the artifact may name.
func (g *Generator) Open(name string, open func(Source) (tree.Reader, error), beside tree.Reader) (*Files, error) {
	sources := map[string]tree.Reader{}
	source := func(alias string) (tree.Reader, error) {
		if known := sources[alias]; known != nil {
			return known, nil
		}
		i := slices.IndexFunc(g.spec.Sources, func(s Source) bool { return s.Alias == alias })
		if i < 0 {
			return nil, fmt.Errorf("spec.sources has no alias %q", alias)
		}
		files, err := open(g.spec.Sources[i])
		sources[alias] = files
		return files, err
	}
	if len(g.spec.PathPattern) == 0 {
		for _, one := range g.spec.Artifacts {
			if one.Name == name {
				return compose(one.Copy, source, beside)
			}
		}
		return nil, ErrNotMade
	}
	if !g.mayMake(name) {
		return nil, ErrNotMade
	}
	steps, err := g.match(name, source)
	if err != nil {
		return nil, fmt.Errorf("spec.pathPattern %q: %w", g.spec.PathPattern, err)
	}
	return compose(steps, source, beside)
}

// Makes reports whether the generator may make an artifact, without a look at its sources.
func (g *Generator) Makes(name string) bool {
	if g.spec.PathPattern != "" {
		return g.mayMake(name)
	}
	return slices.ContainsFunc(g.spec.Artifacts, func(one output) bool { return one.Name == name })
}

// capture is a part of a path pattern, or of what is made with it, in the place of the name of a directory.
var capture = lazyregexp.New(`\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// mayMake reports whether any of the names with captures can be a name.
func (g *Generator) mayMake(name string) bool {
	return slices.ContainsFunc(g.spec.Artifacts, func(one output) bool {
		matching, err := regexp.Compile("^" + capturesIn(regexp.QuoteMeta(one.Name), "(.+)") + "$")
		return err == nil && matching.MatchString(name)
	})
}

// capturesIn replaces the captures of a quoted text. By is what replaces them, with the name of each as $1.
func capturesIn(quoted, by string) string {
	return quotedCapture.ReplaceAllString(quoted, by)
}

var quotedCapture = lazyregexp.New(`\\\{([A-Za-z_][A-Za-z0-9_]*)\\\}`)

// match returns the steps of the artifact with a name: those of the directory whose captures make it.
func (g *Generator) match(name string, source func(alias string) (tree.Reader, error)) ([]copyStep, error) {
	alias, pattern, err := parseFrom(g.spec.PathPattern)
	if err != nil {
		return nil, err
	}
	matching, err := regexp.Compile("^" + capturesIn(regexp.QuoteMeta(pattern), "(?P<$1>[^/]+)") + "$")
	if err != nil {
		return nil, err
	}
	files, err := source(alias)
	if err != nil {
		return nil, err
	}
	var found []copyStep
	err = walkDirectories(files, strings.Count(pattern, "/")+1, func(dir string) error {
		parts := matching.FindStringSubmatch(dir)
		if parts == nil {
			return nil
		}
		raw, lower := map[string]string{}, map[string]string{}
		for i, key := range matching.SubexpNames() {
			if key != "" {
				raw[key], lower[key] = parts[i], strings.ToLower(parts[i])
			}
		}
		for _, one := range g.spec.Artifacts {
			if fill(one.Name, lower) != name {
				continue
			}
			if found != nil {
				return fmt.Errorf("several directories make the artifact %s", name)
			}
			found = []copyStep{}
			for _, step := range one.Copy {
				step.From, step.To = fill(step.From, raw), fill(step.To, raw)
				found = append(found, step)
			}
		}
		return nil
	})
	if err == nil && found == nil {
		err = ErrNotMade
	}
	return found, err
}

// fill replaces the captures of a text by their values.
func fill(text string, values map[string]string) string {
	return capture.ReplaceAllStringFunc(text, func(one string) string {
		if value, ok := values[one[1:len(one)-1]]; ok {
			return value
		}
		return one
	})
}

// walkDirectories calls do with each directory up to a depth.
func walkDirectories(files tree.Reader, depth int, do func(dir string) error) error {
	next := []string{"."}
	for ; depth > 0; depth-- {
		var below []string
		for _, at := range next {
			list, err := files.List(at)
			if errors.Is(err, tree.ErrSubmodule) {
				continue
			}
			if err != nil {
				return err
			}
			for _, entry := range list {
				if !entry.Dir {
					continue
				}
				dir := path.Join(at, path.Base(entry.Path))
				below = append(below, dir)
				if err := do(dir); err != nil {
					return err
				}
			}
		}
		next = below
	}
	return nil
}

// parseFrom returns the alias and the path of @alias/path.
func parseFrom(from string) (alias, at string, err error) {
	rest, isAlias := strings.CutPrefix(from, "@")
	alias, at, hasPath := strings.Cut(rest, "/")
	if !isAlias || !hasPath {
		return "", "", fmt.Errorf("%q must be @ALIAS/PATH", from)
	}
	return alias, at, nil
}

// Directories returns the directories of the source that an artifact is copied from, "." for all of it. With a path pattern, * is in
// the place of what it captures.
func (g *Generator) Directories(name string) []string {
	out := map[string]bool{}
	for _, one := range g.spec.Artifacts {
		if g.spec.PathPattern == "" && one.Name != name {
			continue
		}
		for _, step := range one.Copy {
			_, at, err := parseFrom(step.From)
			if err != nil {
				continue
			}
			root := path.Clean(selectionRoot(at))
			out[capture.ReplaceAllString(root, "*")] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}
