// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// maxSubmodules bounds how many repositories one source may lead to.
const maxSubmodules = 50

// mountSubmodules fetches what .gitmodules names, at the commits that the tree names. Submodules of submodules stay out.
// The source's secret is used for repositories on the source's own host only.
func (f *Fetcher) mountSubmodules(ctx context.Context, namespace string, src *v1alpha1.GitSource, files *tree.Tree) (*tree.Tree, error) {
	text, err := tree.NewView(files, tree.Limits{FileBytes: 1 << 20}).Read(".gitmodules")
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading .gitmodules: %w", err)
	}
	modules := config.NewModules()
	if err := modules.Unmarshal(text); err != nil {
		return nil, fmt.Errorf("reading .gitmodules: %w", err)
	}
	if len(modules.Submodules) > maxSubmodules {
		return nil, &tree.LimitError{What: "number of submodules", Limit: maxSubmodules}
	}
	mounts := map[string]*tree.Tree{}
	for _, module := range modules.Submodules {
		at := path.Clean(module.Path)
		commit, ok, err := files.Submodule(at)
		if err != nil {
			return nil, fmt.Errorf("reading .gitmodules: %w", err)
		}
		if !ok {
			continue
		}
		mount, err := f.submodule(ctx, namespace, src, module.URL, commit)
		if err != nil {
			return nil, fmt.Errorf("fetching submodule %s: %w", at, err)
		}
		mounts[at] = mount
	}
	return files.WithMounts(mounts), nil
}

func (f *Fetcher) submodule(ctx context.Context, namespace string, src *v1alpha1.GitSource, to, commit string) (*tree.Tree, error) {
	target := resolve(src.URL, to)
	ref := src.SecretRef
	if !sameHost(src.URL, target) {
		ref = nil
	}
	mirror, remote, err := f.Repository(ctx, namespace, target, ref)
	if err != nil {
		return nil, err
	}
	found, err := mirror.Fetch(ctx, remote, git.Ref{Commit: plumbing.NewHash(commit)})
	if err != nil {
		return nil, err
	}
	return mirror.Tree(found), nil
}

// resolve gives the URL of a submodule, which may be relative to that of its repository.
func resolve(base, to string) string {
	if !strings.HasPrefix(to, "./") && !strings.HasPrefix(to, "../") {
		return to
	}
	parsed, err := url.Parse(base)
	if err != nil || parsed.Host == "" {
		host, dir, _ := strings.Cut(base, ":")
		return host + ":" + strings.TrimPrefix(path.Join("/", dir, to), "/")
	}
	parsed.Path = path.Join(parsed.Path, to)
	return parsed.String()
}

// sameHost compares scheme, host and port. The short ssh form has no scheme and is compared as it is written.
func sameHost(a, b string) bool {
	one, errOne := url.Parse(a)
	two, errTwo := url.Parse(b)
	if errOne != nil || errTwo != nil || one.Host == "" || two.Host == "" {
		hostA, _, _ := strings.Cut(a, ":")
		hostB, _, _ := strings.Cut(b, ":")
		return hostA == hostB && strings.Contains(hostA, "@")
	}
	return one.Scheme == two.Scheme && one.Host == two.Host
}
