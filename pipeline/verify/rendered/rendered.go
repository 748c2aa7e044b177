// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package rendered reads what was committed, for verify: the newest commit of a branch and those before it, or a directory
// that is in no repository. It reads as little of older commits as it is asked for.
package rendered

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	gogit "github.com/go-git/go-git/v5"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/pipeline/verify"
)

// Options describe what is read.
type Options struct {
	// Registry knows the kinds with pod templates.
	Registry *workload.Registry
	// Namespace is that of objects that name none.
	Namespace string
	// Revision is the branch or commit that a cluster is to have; "" is HEAD.
	Revision string
	// Paths are the directories that are read; none means all.
	Paths []string
	// MaxCommits bounds how many commits are looked at before the newest one.
	MaxCommits int
}

// maxFile bounds one file.
const maxFile = 64 << 20

// Open reads the newest state of the repository that a directory is in, or the directory itself where it is in none and no
// revision is asked for. Paths are relative to the directory.
func Open(ctx context.Context, dir string, o Options) (verify.History, error) {
	local, err := git.OpenLocal(dir)
	if errors.Is(err, gogit.ErrRepositoryNotExists) && o.Revision == "" {
		return openDirectory(ctx, dir, o)
	}
	if err != nil {
		return nil, err
	}
	below, err := insideOf(dir)
	if err != nil {
		return nil, err
	}
	paths := o.Paths
	if len(paths) == 0 {
		paths = []string{"."}
	}
	o.Paths = nil
	for _, p := range paths {
		o.Paths = append(o.Paths, path.Join(below, filepath.ToSlash(p)))
	}
	revision := o.Revision
	if revision == "" {
		revision = "HEAD"
	}
	return New(ctx, func(id string) (*git.Commit, *tree.Tree, error) {
		if id == "" {
			id = revision
		}
		return local.Commit(id)
	}, o)
}

// Files returns all files of a commit of the repository that a directory is in, "" for HEAD, or those of the directory itself where it is
// in none. Their paths are those that workloads have.
func Files(dir, revision string) (fs.FS, error) {
	local, err := git.OpenLocal(dir)
	if errors.Is(err, gogit.ErrRepositoryNotExists) && revision == "" {
		return os.DirFS(dir), nil
	}
	if err != nil {
		return nil, err
	}
	if revision == "" {
		revision = "HEAD"
	}
	_, files, err := local.Commit(revision)
	if err != nil {
		return nil, err
	}
	return tree.FS(tree.NewView(files, tree.Limits{FileBytes: maxFile})), nil
}

// insideOf returns the path of a directory below the root of its repository.
func insideOf(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := absolute; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			rel, err := filepath.Rel(at, absolute)
			return filepath.ToSlash(rel), err
		}
		if at == filepath.Dir(at) {
			return ".", nil // a bare repository
		}
	}
}

// Commits returns a commit and its files by the commit's hash, or those of the newest one for "".
type Commits func(id string) (*git.Commit, *tree.Tree, error)

// New reads the newest commit.
func New(ctx context.Context, commits Commits, o Options) (verify.History, error) {
	commit, files, err := commits("")
	if err != nil {
		return nil, err
	}
	h := newHistory(o)
	h.commits = commits
	first, err := h.stateOf(commit, files)
	if err != nil {
		return nil, err
	}
	if err := h.hasPaths(first); err != nil {
		return nil, err
	}
	if len(first.files) == 0 {
		return nil, fmt.Errorf("reading %s of %s: there are no manifests", strings.Join(h.options.Paths, ", "), first.commit)
	}
	return h, h.setHead(ctx, first)
}

// hasPaths returns an error for a path that the newest commit does not have: it is a typo or was renamed, and its
// expected content would not be compared.
func (h *history) hasPaths(newest *state) error {
	for _, from := range h.options.Paths {
		if _, err := newest.tree.Entries(path.Clean(from)); err != nil {
			return fmt.Errorf("reading %s of %s: %w", from, newest.commit, err)
		}
	}
	return nil
}

// openDirectory reads files that are in no repository.
func openDirectory(ctx context.Context, dir string, o Options) (verify.History, error) {
	h := newHistory(o)
	first := &state{files: map[string]string{}}
	root := os.DirFS(dir)
	for _, from := range h.options.Paths {
		err := fs.WalkDir(root, path.Clean(filepath.ToSlash(from)), func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && manifest.IsFileName(name) {
				first.files[name] = name
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", dir, err)
		}
	}
	if len(first.files) == 0 {
		return nil, fmt.Errorf("reading %s: there are no manifests", dir)
	}
	h.read = func(_ *state, name string) ([]byte, error) { return fs.ReadFile(root, name) }
	return h, h.setHead(ctx, first)
}

func newHistory(o Options) *history {
	if len(o.Paths) == 0 {
		o.Paths = []string{"."}
	}
	h := &history{options: o, blobs: map[string]*blob{}}
	h.read = func(s *state, name string) ([]byte, error) {
		view := tree.NewView(s.tree, tree.Limits{FileBytes: maxFile})
		return view.Read(name)
	}
	return h
}

// state is what was committed at one time.
type state struct {
	commit  verify.Commit
	tree    *tree.Tree
	parents []git.Hash
	files   map[string]string // digests of the manifests by their paths

	indexed  sync.Once
	names    map[string][]string // files that the next state does not have so, by the names in them
	indexErr error
}

// stateOf lists the manifests of a commit.
func (h *history) stateOf(commit *git.Commit, files *tree.Tree) (*state, error) {
	s := &state{tree: files, parents: commit.Parents, files: map[string]string{}}
	s.commit = verify.Commit{ID: commit.Hash.String(), Time: commit.Date, Subject: commit.Subject, Source: singleCommitTrailer(commit.Body, publish.TrailerRevision)}
	for _, from := range h.options.Paths {
		if err := s.addManifestsBelow(path.Clean(from)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// singleCommitTrailer returns the value of a commit's trailer where it has only one.
func singleCommitTrailer(body, name string) string {
	found := ""
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			if found != "" {
				return ""
			}
			found = strings.TrimSpace(value)
		}
	}
	return found
}

// addManifestsBelow adds the manifests below a directory, or a file. One that this commit does not have adds none.
func (s *state) addManifestsBelow(name string) error {
	entries, err := s.tree.Entries(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		below := path.Join(name, e.Name)
		switch {
		case e.Mode == tree.Dir:
			if err := s.addManifestsBelow(below); err != nil {
				return err
			}
		case (e.Mode == tree.File || e.Mode == tree.Executable) && manifest.IsFileName(e.Name):
			s.files[below] = e.ID
		}
	}
	return nil
}

// hasSameManifests reports whether two states have the same manifests.
func (s *state) hasSameManifests(o *state) bool { return maps.Equal(s.files, o.files) }

// filesChangedBefore returns the files of a state that the next one does not have as they are, sorted.
func (s *state) filesChangedBefore(next *state) []string {
	var out []string
	for name, id := range s.files {
		if next.files[name] != id {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
