// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/giturl"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Bounds of what one source may lead to.
const (
	maxSubmodules = 50 // repositories
	maxNested     = 8  // one inside of the other
)

// submoduleSource is a Git repository and the secret for it.
type submoduleSource struct {
	url string
	ref *meta.LocalObjectReference
}

// submoduleFetcher fetches what .gitmodules files name, at the commits that the trees name, also inside of submodules.
type submoduleFetcher struct {
	fetcher *Fetcher
	scope   Scope
	// choose returns how to fetch the repository of a submodule, based on the one that contains it; false leaves it
	// out.
	choose func(in submoduleSource, target string) (submoduleSource, bool)
	mounts map[string]*tree.Tree
}

// mountSubmodules returns the files of a source with those of its submodules.
func (f *Fetcher) mountSubmodules(ctx context.Context, scope Scope, src *v1alpha1.GitSource,
	files *tree.Tree) (*tree.Tree, error) {
	s := &submoduleFetcher{fetcher: f, scope: scope, choose: ofSameHost, mounts: map[string]*tree.Tree{}}
	return s.mountAll(ctx, submoduleSource{src.URL, src.SecretRef}, files)
}

// ofSameHost uses the secret of a source for repositories on its own host only. One that is reached through another
// host gets none, wherever it is: what is on that host is not ours to trust.
func ofSameHost(in submoduleSource, target string) (submoduleSource, bool) {
	r := submoduleSource{url: target}
	if giturl.SameServer(in.url, target) {
		r.ref = in.ref
	}
	return r, true
}

func (s *submoduleFetcher) mountAll(ctx context.Context, in submoduleSource, files *tree.Tree) (*tree.Tree, error) {
	if err := s.mountBelow(ctx, in, files, "", 0); err != nil {
		return nil, err
	}
	if len(s.mounts) == 0 {
		return files, nil
	}
	return files.WithMounts(s.mounts), nil
}

// mountBelow mounts the submodules of one tree, which is at a path of the whole.
func (s *submoduleFetcher) mountBelow(ctx context.Context, in submoduleSource, files *tree.Tree, at string,
	depth int) error {
	modules, err := readModules(files)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path.Join(at, ".gitmodules"), err)
	}
	for _, module := range modules {
		inside := path.Clean(module.Path)
		commit, ok, err := files.Submodule(inside)
		if err != nil {
			return fmt.Errorf("reading %s: %w", path.Join(at, ".gitmodules"), err)
		}
		if !ok {
			continue
		}
		from, ok := s.choose(in, giturl.Resolve(in.url, module.URL))
		if !ok {
			continue
		}
		name := path.Join(at, inside)
		if depth >= maxNested {
			return &tree.LimitError{What: "number of submodules one inside of the other", Limit: maxNested}
		}
		if len(s.mounts) >= maxSubmodules {
			return &tree.LimitError{What: "number of submodules", Limit: maxSubmodules}
		}
		if err := s.fetcher.CheckReach(s.scope, from.url); err != nil {
			return fmt.Errorf("fetching submodule %s: %w", name, err)
		}
		mount, err := s.fetcher.Files(ctx, s.scope.Namespace, from.url, from.ref, commit)
		if err != nil {
			return fmt.Errorf("fetching submodule %s: %w", name, err)
		}
		s.mounts[name] = mount
		if err := s.mountBelow(ctx, from, mount, name, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// CheckReach rejects repositories that the daemon, or the tenant who owns the pipeline, may not read: no other code
// checks the repositories that no pipeline names, but a submodule or a fork.
func (f *Fetcher) CheckReach(scope Scope, url string) error {
	if allowed := f.options.Sources; allowed != nil && !giturl.Allows(allowed, url) {
		return errors.New("pipelines of this daemon may not read its repository; who runs the daemon can allow it with egress.sources")
	}
	if allowed := scope.Submodules; allowed != nil && !giturl.Allows(allowed, url) {
		return fmt.Errorf("%s may not read its repository; who runs the daemon can allow it with the tenant's sources",
			scope.Whose)
	}
	return nil
}

// readModules returns the submodules that a tree declares, by their paths.
func readModules(files *tree.Tree) ([]*config.Submodule, error) {
	text, err := tree.NewView(files, tree.Limits{FileBytes: 1 << 20}).Read(".gitmodules")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	modules := config.NewModules()
	if err := modules.Unmarshal(text); err != nil {
		return nil, err
	}
	var out []*config.Submodule
	for _, module := range modules.Submodules {
		out = append(out, module)
	}
	slices.SortFunc(out, func(a, b *config.Submodule) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// Files returns the files of a repository at an exact commit. One that was fetched before costs the server a question
// only where it has not let these credentials read for git.AccessBound.
func (f *Fetcher) Files(ctx context.Context, namespace, url string, ref *meta.LocalObjectReference,
	commit string) (*tree.Tree, error) {
	mirror, remote, err := f.Repository(ctx, namespace, url, ref)
	if err != nil {
		return nil, err
	}
	found, err := mirror.Fetch(ctx, remote, git.Ref{Commit: plumbing.NewHash(commit)})
	if err != nil {
		return nil, err
	}
	if err := mirror.Remember(ctx, found.Hash); err != nil {
		return nil, err
	}
	return mirror.Tree(found), nil
}

// FilesWithSubmodules is Files, with the submodules whose repositories are allowed: allow returns how to fetch one.
func (f *Fetcher) FilesWithSubmodules(ctx context.Context, namespace, url string, ref *meta.LocalObjectReference,
	commit string,
	allow func(url string) (fetch string, ref *meta.LocalObjectReference, ok bool),
) (*tree.Tree, error) {
	files, err := f.Files(ctx, namespace, url, ref, commit)
	if err != nil {
		return nil, err
	}
	s := &submoduleFetcher{fetcher: f, scope: Scope{Namespace: namespace}, mounts: map[string]*tree.Tree{}, choose: func(_ submoduleSource, target string) (submoduleSource, bool) {
		from, ref, ok := allow(target)
		return submoduleSource{from, ref}, ok
	}}
	return s.mountAll(ctx, submoduleSource{url, ref}, files)
}
