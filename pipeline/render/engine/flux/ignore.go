// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Artifact is a tree without the files that source-controller leaves out of the artifact of a GitRepository: those of .sourceignore
// files, of spec.ignore, and without any of these the defaults (source:
// internal/controller/gitrepository_controller.go of source-controller). Of a file, the .sourceignore files of its own directory and those above count; source-controller also has
// one elsewhere switch off the defaults.
type Artifact struct {
	tree.Reader
	root  string
	spec  []gitignore.Pattern
	known map[string][]gitignore.Pattern // by directory, with those of the directories above it
	// generated reports that the defaults alone count, as in the artifacts that source-watcher makes (its internal/builder).
	generated bool
}

// NewGenerated returns the files of an artifact that a generator has composed, without what is ignored by default.
func NewGenerated(files tree.Reader) *Artifact {
	a := NewArtifact(files, ".", "")
	a.generated = true
	return a
}

// NewArtifact returns the files of a repository, whose root is a directory of the tree, without what is ignored. ignore is spec.ignore of
// its GitRepository.
func NewArtifact(files tree.Reader, root, ignore string) *Artifact {
	a := &Artifact{Reader: files, root: render.CleanPath(root), known: map[string][]gitignore.Pattern{}}
	a.spec = sourceignore.ReadPatterns(strings.NewReader(ignore), nil)
	return a
}

// Read implements tree.Reader.
func (a *Artifact) Read(name string) ([]byte, error) {
	if err := a.check(name, false); err != nil {
		return nil, err
	}
	return a.Reader.Read(name)
}

// Lookup implements tree.Reader.
func (a *Artifact) Lookup(name string) (tree.Info, error) {
	info, err := a.Reader.Lookup(name)
	if err == nil {
		err = a.check(name, info.Dir)
	}
	return info, err
}

// List implements tree.Reader.
func (a *Artifact) List(name string) ([]tree.Info, error) {
	list, err := a.Reader.List(name)
	if err != nil {
		return nil, err
	}
	var out []tree.Info
	for _, entry := range list {
		err := a.check(path.Join(name, path.Base(entry.Path)), entry.Dir)
		if err == nil {
			out = append(out, entry)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return out, nil
}

// check returns an error that is fs.ErrNotExist for what the artifact does not have.
func (a *Artifact) check(name string, dir bool) error {
	at := render.CleanPath(name)
	inside, ok := strings.CutPrefix(at, strings.TrimPrefix(a.root+"/", "/"))
	if !ok || inside == "" || strings.HasPrefix(at, render.BasePrefix) {
		return nil // it is no file of the repository
	}
	patterns, err := a.patternsOf(path.Dir(inside))
	if err != nil {
		return err
	}
	patterns = slices.Concat(patterns, a.spec)
	if len(patterns) == 0 {
		patterns = sourceignore.DefaultPatterns(nil)
	}
	matcher := sourceignore.NewMatcher(slices.Concat(sourceignore.VCSPatterns(nil), patterns))
	if matcher.Match(strings.Split(inside, "/"), dir) {
		return &fs.PathError{Op: "reading", Path: at + ", which Flux ignores (.sourceignore, spec.ignore or its defaults)", Err: fs.ErrNotExist}
	}
	return nil
}

// patternsOf returns the patterns of the .sourceignore files of a directory of the repository, and of those above it.
func (a *Artifact) patternsOf(dir string) ([]gitignore.Pattern, error) {
	if a.generated {
		return nil, nil
	}
	if known, ok := a.known[dir]; ok {
		return known, nil
	}
	var out []gitignore.Pattern
	var domain []string
	if dir != "." {
		above, err := a.patternsOf(path.Dir(dir))
		if err != nil {
			return nil, err
		}
		out, domain = slices.Clone(above), strings.Split(dir, "/")
	}
	content, err := a.Reader.Read(path.Join(a.root, dir, sourceignore.IgnoreFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading what Flux ignores: %w", err)
	}
	out = append(out, sourceignore.ReadPatterns(bytes.NewReader(content), domain)...)
	a.known[dir] = out
	return out, nil
}
