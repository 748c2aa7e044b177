// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// The strategies of a step beside the default, which overwrites.
const (
	strategyMerge   = "Merge"
	strategyExtract = "Extract"
)

// maxFiles bounds the files of one artifact.
const maxFiles = 100_000

// compose returns the files of an artifact that is made in steps.
func compose(steps []copyStep, source func(alias string) (tree.Reader, error), beside tree.Reader) (*Files, error) {
	out := newFiles(beside)
	for i, step := range steps {
		if err := composeStep(out, step, source); err != nil {
			return nil, fmt.Errorf("copy[%d] from %s to %s: %w", i, step.From, step.To, err)
		}
	}
	return out, nil
}

func composeStep(out *Files, step copyStep, source func(alias string) (tree.Reader, error)) error {
	alias, pattern, err := parseFrom(step.From)
	if err != nil {
		return err
	}
	to, ok := strings.CutPrefix(step.To, "@artifact/")
	if !ok {
		return errors.New("the destination must begin with @artifact/")
	}
	for _, one := range step.Exclude {
		if !doublestar.ValidatePattern(one) {
			return fmt.Errorf("the pattern %q of exclude is none", one)
		}
	}
	if step.Strategy == strategyExtract {
		return errors.New("a render does not unpack archives (strategy Extract)")
	}
	files, err := source(alias)
	if err != nil {
		return err
	}
	c := &copying{step: step, from: files, out: out, toDirectory: strings.HasSuffix(step.To, "/")}
	if !isGlob(pattern) {
		return c.copyOne(path.Clean(pattern), to)
	}
	return c.copyMatches(pattern, to)
}

// copying is one step.
type copying struct {
	step        copyStep
	from        tree.Reader
	out         *Files
	toDirectory bool
}

// copyOne copies a file, or a directory with its name.
func (c *copying) copyOne(at, to string) error {
	info, err := c.from.Lookup(at)
	if err != nil {
		return err
	}
	if info.Dir {
		base := path.Base(at)
		return c.copyEntry(at, path.Join(to, base), at)
	}
	if c.isExcluded(at, ".") {
		return nil
	}
	target := path.Join(".", to)
	if c.toDirectory || c.out.isDirectory(target) {
		target = path.Join(target, path.Base(at))
	}
	return c.copyEntry(at, target, ".")
}

// copyMatches copies what a pattern matches. As source-watcher uses it, ** matches no more than * does; what it matches is copied with all
// below it.
func (c *copying) copyMatches(pattern, to string) error {
	matches, err := fs.Glob(tree.FS(c.from), pattern)
	if err != nil {
		return fmt.Errorf("the pattern %q: %w", pattern, err)
	}
	if len(matches) == 0 {
		return errors.New("no file matches")
	}
	base, copied := selectionRoot(pattern), 0
	for _, match := range matches {
		if match == "." || match == ".." || c.isExcluded(match, base) {
			continue
		}
		copied++
		inside := match
		if prefix, ok := strings.CutSuffix(pattern, "/**"); ok {
			inside = strings.TrimPrefix(match, prefix+"/")
		}
		if err := c.copyEntry(match, path.Join(to, inside), base); err != nil {
			return err
		}
	}
	if copied == 0 {
		return errors.New("all files that match are excluded")
	}
	return nil
}

// copyEntry copies a file, or what is in a directory. base is what patterns of exclude may be relative to.
func (c *copying) copyEntry(at, to, base string) error {
	info, err := c.from.Lookup(at)
	if err != nil {
		return err
	}
	if to = path.Clean(to); to == ".." || strings.HasPrefix(to, "../") {
		return errors.New("the destination is outside of the artifact")
	}
	if info.Dir {
		return c.copyDirectory(at, clean(to), base)
	}
	if len(c.out.entries) > maxFiles {
		return fmt.Errorf("the artifact has more than %d files", maxFiles)
	}
	target := path.Join(".", to)
	if c.step.Strategy == strategyMerge && c.out.entries[target] != nil {
		return c.merge(at, target)
	}
	return c.out.put(target, &entry{from: c.from, path: at, exec: info.Exec})
}

// copyDirectory copies what is in a directory. Merging is for single files and matches alone.
func (c *copying) copyDirectory(at, to, base string) error {
	if err := c.out.addDirectory(to); err != nil {
		return err
	}
	list, err := c.from.List(at)
	if errors.Is(err, tree.ErrSubmodule) {
		return nil // of which Git has no files
	}
	if err != nil {
		return err
	}
	for _, one := range list {
		name := path.Base(one.Path)
		from, target := path.Join(at, name), path.Join(to, name)
		switch {
		case c.isExcluded(from, base):
		case one.Dir:
			err = c.copyDirectory(from, target, base)
		case len(c.out.entries) > maxFiles:
			err = fmt.Errorf("the artifact has more than %d files", maxFiles)
		default:
			err = c.out.put(target, &entry{from: c.from, path: from, exec: one.Exec})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// merge merges a file of YAML into one of the artifact, as Helm merges values.
func (c *copying) merge(at, target string) error {
	over, err := c.from.Read(at)
	if err != nil {
		return err
	}
	under, err := c.out.Read(target)
	if err != nil {
		return err
	}
	first, err := readDocuments(under)
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	second, err := readDocuments(over)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	merged, err := yaml.Marshal(mergeMaps(first, second))
	if err != nil {
		return err
	}
	known := c.out.entries[target]
	known.from, known.content = nil, merged
	return nil
}

// readDocuments merges the documents of a file into one map.
func readDocuments(text []byte) (map[string]any, error) {
	out := map[string]any{}
	reader := yamlreader.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		one := map[string]any{}
		if err := yaml.Unmarshal(doc, &one); err != nil {
			return nil, err
		}
		out = mergeMaps(out, one)
	}
}

// mergeMaps merges maps into each other; of other values, those of over count.
func mergeMaps(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	for key, value := range over {
		inner, isMap := value.(map[string]any)
		known, wasMap := out[key].(map[string]any)
		if isMap && wasMap {
			value = mergeMaps(known, inner)
		}
		out[key] = value
	}
	return out
}

// isExcluded reports whether a path is excluded: by its path in the source, by the one below base, or by its name.
func (c *copying) isExcluded(at, base string) bool {
	if c.matchesExclude(at) {
		return true
	}
	if base == "." {
		return false
	}
	inside, ok := strings.CutPrefix(at, base+"/")
	return ok && c.matchesExclude(inside)
}

func (c *copying) matchesExclude(at string) bool {
	for _, pattern := range c.step.Exclude {
		if doublestar.MatchUnvalidated(pattern, at) {
			return true
		}
		if !strings.Contains(pattern, "/") && doublestar.MatchUnvalidated(pattern, path.Base(at)) {
			return true
		}
	}
	return false
}

func isGlob(pattern string) bool { return strings.ContainsAny(pattern, "*?[]") }

// selectionRoot returns the parts of a pattern before the first one with wildcards, "." for none.
func selectionRoot(pattern string) string {
	var parts []string
	for part := range strings.SplitSeq(path.Clean(pattern), "/") {
		if isGlob(part) {
			break
		}
		parts = append(parts, part)
	}
	return path.Join(append([]string{"."}, parts...)...)
}
