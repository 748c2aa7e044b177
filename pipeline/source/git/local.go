// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-billy/v5"
	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// Local is a repository on this machine, for reading commits that it already contains.
type Local struct {
	mirror     *Mirror
	repository *gogit.Repository
}

// OpenLocal opens the repository that a directory is in.
func OpenLocal(dir string) (*Local, error) {
	repository, err := gogit.PlainOpenWithOptions(dir, &gogit.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if err != nil {
		return nil, fmt.Errorf("opening the repository of %s: %w", dir, err)
	}
	storage, ok := repository.Storer.(*filesystem.Storage)
	if !ok {
		return nil, fmt.Errorf("opening the repository of %s: it is not kept in files", dir)
	}
	files := storage.Filesystem()
	shared, err := withShared(files, objectsDirectory(files.Root()))
	if err != nil {
		return nil, fmt.Errorf("opening the repository of %s: %w", dir, err)
	}
	if shared != nil {
		var worktree billy.Filesystem
		if at, err := repository.Worktree(); err == nil {
			worktree = at.Filesystem
		}
		files, storage = shared, filesystem.NewStorage(shared, cache.NewObjectLRUDefault())
		if repository, err = gogit.Open(storage, worktree); err != nil {
			return nil, fmt.Errorf("opening the repository of %s: %w", dir, err)
		}
	}
	mirror := &Mirror{
		objectStore: objectStore{dir: files.Root(), files: indexedFS{files}, storage: storage},
		limits:      DefaultLimits(), fetchLock: make(chan struct{}, 1),
	}
	return &Local{mirror: mirror, repository: repository}, nil
}

// Root returns the directory of the repository's files, without symbolic links. A bare repository has none.
func (l *Local) Root() (string, error) {
	worktree, err := l.repository.Worktree()
	if err != nil {
		return "", fmt.Errorf("looking for the root of the repository: %w", err)
	}
	return filepath.EvalSymlinks(worktree.Filesystem.Root())
}

// URLs of the repository's remotes, that of origin first.
func (l *Local) URLs() []string {
	var out []string
	remotes, err := l.repository.Remotes()
	if err != nil {
		return nil
	}
	// They are in a map: without an order the answer would be another one each time.
	slices.SortFunc(remotes, func(a, b *gogit.Remote) int {
		one, other := a.Config().Name, b.Config().Name
		if (one == gogit.DefaultRemoteName) != (other == gogit.DefaultRemoteName) {
			return map[bool]int{true: -1, false: 1}[one == gogit.DefaultRemoteName]
		}
		return strings.Compare(one, other)
	})
	for _, r := range remotes {
		out = append(out, r.Config().URLs...)
	}
	return out
}

// Commit returns the commit that a revision such as main, v1 or HEAD~2 means, and its files.
func (l *Local) Commit(revision string) (*Commit, *tree.Tree, error) {
	hash, err := l.repository.ResolveRevision(plumbing.Revision(revision))
	if err != nil {
		if info, statErr := os.Stat(revision); statErr == nil && info.IsDir() {
			return nil, nil, fmt.Errorf("finding the revision %q: it is a directory; to choose the repository, use -C", revision)
		}
		return nil, nil, fmt.Errorf("finding the revision %q: %w", revision, err)
	}
	commit, err := l.mirror.Commit(*hash)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the revision %q: %w", revision, err)
	}
	return commit, l.mirror.Tree(commit), nil
}

// Ignored returns a function that reports whether git ignores a file or directory of the work tree, by its path from the root: nothing
// of it is committed, and a file .gitignore names it.
func (l *Local) Ignored() (func(name string, dir bool) bool, error) {
	worktree, err := l.repository.Worktree()
	if err != nil {
		return nil, fmt.Errorf("looking for the root of the repository: %w", err)
	}
	patterns, err := gitignore.ReadPatterns(worktree.Filesystem, nil)
	if err != nil {
		return nil, fmt.Errorf("reading what git ignores: %w", err)
	}
	index, err := l.repository.Storer.Index()
	if err != nil {
		return nil, fmt.Errorf("reading the index of the repository: %w", err)
	}
	committed := map[string]bool{}
	for _, e := range index.Entries {
		for name := e.Name; name != "." && !committed[name]; name = path.Dir(name) {
			committed[name] = true
		}
	}
	matcher := gitignore.NewMatcher(patterns)
	return func(name string, dir bool) bool {
		return !committed[name] && matcher.Match(strings.Split(name, "/"), dir)
	}, nil
}

// ForkPoint returns the commit at which HEAD left the default branch of the remote origin, or the local branch main or master if there
// is no remote. If HEAD is that branch itself, it is HEAD.
func (l *Local) ForkPoint() (string, error) {
	for _, name := range []string{"refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master", "refs/heads/main", "refs/heads/master"} {
		hash, err := l.repository.ResolveRevision(plumbing.Revision(name))
		if err != nil {
			continue
		}
		branch, err := l.repository.CommitObject(*hash)
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", name, err)
		}
		head, err := l.repository.ResolveRevision("HEAD")
		if err != nil {
			return "", fmt.Errorf("reading HEAD: %w", err)
		}
		commit, err := l.repository.CommitObject(*head)
		if err != nil {
			return "", fmt.Errorf("reading HEAD: %w", err)
		}
		bases, err := commit.MergeBase(branch)
		if shallow, _ := l.repository.Storer.Shallow(); len(shallow) > 0 && (err != nil || len(bases) == 0) {
			if common := commonAncestor(commit, branch); common != "" {
				return common, nil
			}
			return "", fmt.Errorf("the clone is shallow, and the commit at which HEAD left %s is not in it: fetch it with git fetch --unshallow "+
				"(actions/checkout: fetch-depth: 0; GitLab: GIT_DEPTH: 0)", name)
		}
		if err != nil {
			return "", fmt.Errorf("looking for the commit at which HEAD left %s: %w", name, err)
		}
		if len(bases) == 0 {
			return "", fmt.Errorf("HEAD and %s have no commit in common", name)
		}
		return bases[0].Hash.String(), nil
	}
	return "", errors.New("the repository has neither a remote branch nor a branch main or master")
}

// commonAncestor returns the newest commit that two have in common as far as a shallow clone has their ancestors, or "".
func commonAncestor(a, b *object.Commit) string {
	first := ancestorsOf(a)
	var newest *object.Commit
	for hash, one := range ancestorsOf(b) {
		if first[hash] != nil && (newest == nil || one.Committer.When.After(newest.Committer.When)) {
			newest = one
		}
	}
	if newest == nil {
		return ""
	}
	return newest.Hash.String()
}

// ancestorsOf returns a commit and those before it that the clone has.
func ancestorsOf(of *object.Commit) map[plumbing.Hash]*object.Commit {
	out := map[plumbing.Hash]*object.Commit{of.Hash: of}
	for next := []*object.Commit{of}; len(next) > 0; next = next[1:] {
		for i := range next[0].NumParents() {
			parent, err := next[0].Parent(i)
			if err == nil && out[parent.Hash] == nil {
				out[parent.Hash] = parent
				next = append(next, parent)
			}
		}
	}
	return out
}
