// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// gitGenerator generates parameters of directories or files of a repository.
type gitGenerator struct {
	RepoURL         string            `json:"repoURL"`
	Revision        string            `json:"revision"`
	Directories     []gitPath         `json:"directories"`
	Files           []gitPath         `json:"files"`
	PathParamPrefix string            `json:"pathParamPrefix"`
	Values          map[string]string `json:"values"`
}

type gitPath struct {
	Path    string `json:"path"`
	Exclude bool   `json:"exclude"`
}

func (g *appSetGenerator) generateGit(at string, spec any) ([]params, error) {
	var git gitGenerator
	if err := decodeGenerator(at, spec, &git); err != nil {
		return nil, err
	}
	root, reason := g.set.findRevision(git.RepoURL, git.Revision)
	if reason != "" {
		return nil, &fieldError{at + ".repoURL", errors.New(reason)}
	}
	switch {
	case len(git.Directories) > 0:
		return g.generateDirectories(at, root, &git)
	case len(git.Files) > 0:
		return g.generateFiles(at, root, &git)
	}
	return nil, &fieldError{at, errors.New("must have directories or files")}
}

func (g *appSetGenerator) generateDirectories(at, root string, git *gitGenerator) ([]params, error) {
	found, err := g.findDirectories(root, "", git.Directories)
	if err != nil {
		return nil, &fieldError{at + ".directories", err}
	}
	var out []params
	for _, dir := range found {
		one := params{}
		g.addPathParams(one, git, dir, "")
		if err := g.addValues(one, git.Values); err != nil {
			return nil, &fieldError{at + ".values", err}
		}
		out = append(out, one)
	}
	return out, nil
}

// findDirectories returns the directories of a repository that are asked for, parents first. Hidden ones are none.
func (g *appSetGenerator) findDirectories(root, dir string, asked []gitPath) ([]string, error) {
	list, err := g.set.in.Files.List(path.Join(root, dir))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, entry := range list {
		name := path.Join(dir, path.Base(entry.Path))
		if !entry.Dir || strings.HasPrefix(path.Base(name), ".") || !mayContain(asked, name) || g.set.isLink(path.Join(root, name)) {
			continue
		}
		if isAsked(asked, name) {
			out = append(out, name)
		}
		below, err := g.findDirectories(root, name, asked)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}

// isAsked reports whether a directory matches a pattern, and none that excludes it.
func isAsked(asked []gitPath, dir string) bool {
	matches := func(exclude bool) bool {
		return slices.ContainsFunc(asked, func(one gitPath) bool {
			ok, err := path.Match(one.Path, dir)
			return one.Exclude == exclude && ok && err == nil
		})
	}
	return matches(false) && !matches(true)
}

// mayContain reports whether a directory or what is below it can match a pattern.
func mayContain(asked []gitPath, dir string) bool {
	depth := strings.Count(dir, "/") + 1
	return slices.ContainsFunc(asked, func(one gitPath) bool {
		parts := strings.Split(one.Path, "/")
		if one.Exclude || len(parts) < depth {
			return false
		}
		ok, err := path.Match(strings.Join(parts[:depth], "/"), dir)
		return ok && err == nil
	})
}

func (g *appSetGenerator) generateFiles(at, root string, git *gitGenerator) ([]params, error) {
	found := map[string]bool{}
	for _, exclude := range []bool{false, true} {
		for i, one := range git.Files {
			if one.Exclude != exclude {
				continue
			}
			names, err := g.findFiles(root, one.Path)
			if err != nil {
				return nil, &fieldError{fmt.Sprintf("%s.files[%d].path", at, i), err}
			}
			for _, name := range names {
				found[name] = !exclude
			}
		}
	}
	var out []params
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if !found[name] {
			continue
		}
		all, err := g.readParams(root, name)
		if err != nil {
			return nil, &fieldError{at + ".files", fmt.Errorf("reading %s: %w", path.Join(root, name), err)}
		}
		for _, one := range all {
			g.addPathParams(one, git, path.Dir(name), path.Base(name))
			if err := g.addValues(one, git.Values); err != nil {
				return nil, &fieldError{at + ".values", err}
			}
			out = append(out, one)
		}
	}
	return out, nil
}

// readParams reads the parameters of a file: an object, or a list of them.
func (g *appSetGenerator) readParams(root, name string) ([]params, error) {
	content, err := g.set.in.Files.Read(path.Join(root, name))
	if err != nil {
		return nil, err
	}
	one, all := params{}, []params{}
	if err := readYAML(content, &one); err == nil {
		all = append(all, one)
	} else if err := readYAML(content, &all); err != nil {
		return nil, err
	}
	for i, one := range all {
		if one == nil {
			all[i] = params{}
		}
		if g.templates.goTemplate {
			continue
		}
		flat := params{}
		flatten("", one, flat)
		for key, value := range flat {
			flat[key] = fmt.Sprint(value)
		}
		all[i] = flat
	}
	return all, nil
}

// addPathParams adds the parameters of a path.
func (g *appSetGenerator) addPathParams(to params, git *gitGenerator, dir, file string) {
	segments := strings.Split(dir, "/")
	named := map[string]any{"basename": path.Base(dir), "basenameNormalized": normalizeName(path.Base(dir))}
	if file != "" {
		named["filename"], named["filenameNormalized"] = file, normalizeName(file)
	}
	if g.templates.goTemplate {
		named["path"], named["segments"] = dir, segments
		if git.PathParamPrefix != "" {
			to[git.PathParamPrefix] = map[string]any{"path": named}
			return
		}
		to["path"] = named
		return
	}
	prefix := "path"
	if git.PathParamPrefix != "" {
		prefix = git.PathParamPrefix + ".path"
	}
	to[prefix] = dir
	for key, value := range named {
		to[prefix+"."+key] = value
	}
	for i, segment := range segments {
		to[prefix+"["+strconv.Itoa(i)+"]"] = segment
	}
}

// addValues adds the values of a generator, which may use its parameters.
func (g *appSetGenerator) addValues(to params, values map[string]string) error {
	filled := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		var err error
		if filled[key], err = g.templates.fill(values[key], to); err != nil {
			return err
		}
	}
	if g.templates.goTemplate && len(filled) > 0 {
		to["values"] = filled
		return nil
	}
	for key, value := range filled {
		to["values."+key] = value
	}
	return nil
}

// findFiles returns the files of a repository that a path means to git ls-files: a file, all files of a directory,
// or a pattern whose asterisks match slashes, too.
func (g *appSetGenerator) findFiles(root, pattern string) ([]string, error) {
	if strings.HasPrefix(pattern, ":") || path.IsAbs(pattern) {
		return nil, errors.New("must be a path in the repository")
	}
	pattern = path.Clean(pattern)
	if pattern == ".." || strings.HasPrefix(pattern, "../") {
		return nil, errors.New("leads out of the repository")
	}
	matches, err := compilePathspec(pattern)
	if err != nil {
		return nil, err
	}
	literal := pattern
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		literal = path.Dir(pattern[:i] + "x")
	}
	info, err := g.set.in.Files.Lookup(path.Join(root, literal))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Dir {
		return []string{literal}, nil
	}
	var out []string
	enter := func(name string) bool { return !g.set.isLink(name) }
	err = g.set.walkFiles(path.Join(root, literal), enter, func(name string) error {
		if name = relativeTo(root, name); matches(name) {
			out = append(out, name)
		}
		return nil
	})
	return out, err
}

// relativeTo returns a path below a directory as it is from there.
func relativeTo(dir, name string) string {
	if dir = path.Clean(dir); dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}

// compilePathspec returns what reports whether git's pathspec matches a file.
func compilePathspec(pattern string) (func(name string) bool, error) {
	var expression strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '*':
			expression.WriteString(".*")
		case '?':
			expression.WriteByte('.')
		case '[':
			end := strings.IndexByte(pattern[min(i+2, len(pattern)):], ']')
			if end < 0 {
				return nil, errors.New("has a [ without a ]")
			}
			class := pattern[i+1 : i+2+end]
			if class[0] == '!' {
				class = "^" + class[1:]
			}
			expression.WriteString("[" + strings.ReplaceAll(class, "[", `\[`) + "]")
			i += 2 + end
		case '\\':
			i++
			expression.WriteString(regexp.QuoteMeta(pattern[min(i, len(pattern)):min(i+1, len(pattern))]))
		default:
			expression.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	compiled, err := regexp.Compile("^(?s:" + expression.String() + ")$")
	if err != nil {
		return nil, err
	}
	return func(name string) bool {
		return pattern == "." || name == pattern || strings.HasPrefix(name, pattern+"/") || compiled.MatchString(name)
	}, nil
}
