// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/render/remotebase"
	"github.com/prerig/prerig/pipeline/source/giturl"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Repositories provides the files of repositories. source.Fetcher is an implementation.
type Repositories interface {
	// Files returns the files at an exact commit.
	Files(ctx context.Context, namespace, url string, ref *meta.LocalObjectReference, commit string) (*tree.Tree, error)
	// FilesWithSubmodules also returns the files of submodules, if allow provides a way to fetch their
	// repositories.
	FilesWithSubmodules(ctx context.Context, namespace, url string, ref *meta.LocalObjectReference, commit string,
		allow func(url string) (fetch string, ref *meta.LocalObjectReference, ok bool)) (*tree.Tree, error)
	// Resolve returns the current commit of a branch or tag, or "" if it does not exist.
	Resolve(ctx context.Context, namespace, url string, ref *meta.LocalObjectReference, name string) (string, error)
}

// FetchError is about a remote base or a chart that is allowed and could not be fetched. Trying again can help.
type FetchError struct{ Err error }

// Error returns the message of the cause.
func (e *FetchError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FetchError) Unwrap() error { return e.Err }

// basesTimeout bounds the fetches for one build, resolveTimeout the question for a better error.
const (
	basesTimeout   = 2 * time.Minute
	resolveTimeout = 5 * time.Second
)

// fetchBases fetches the remote bases that the pipeline allows. The pipeline decides which these are, and it is not
// part of the source.
func (b *Builder) fetchBases(ctx context.Context, p *v1alpha1.RenderPipeline, view *tree.View, request *render.Request) (tree.Reader, error) {
	if len(p.Spec.Build.RemoteBases) == 0 || b.Repositories == nil {
		return view, nil
	}
	a := &allowedBases{b: b, namespace: p.Metadata.Namespace, list: p.Spec.Build.RemoteBases}
	for i, one := range a.list {
		pattern, err := giturl.ParsePattern(one.URL)
		if err != nil {
			return nil, fmt.Errorf("reading spec.build.remoteBases[%d].url: %w", i, err)
		}
		a.patterns = append(a.patterns, pattern)
	}
	bounded, cancel := context.WithTimeout(ctx, basesTimeout)
	defer cancel()
	found, files, err := reference.FindBases(bounded, view, *request, a.fetchBase)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = &FetchError{err}
	}
	request.Bases = found
	return files, err
}

// allowedBases are the repositories that a pipeline allows as bases.
type allowedBases struct {
	b         *Builder
	namespace string
	list      []v1alpha1.RemoteBase
	patterns  []giturl.Pattern
}

// findRepository returns how a repository is to be fetched. An error is reference.ErrNotAllowed.
func (a *allowedBases) findRepository(base *giturl.Address) (string, *meta.LocalObjectReference, error) {
	i, url := giturl.Best(a.patterns, base)
	if i < 0 {
		return "", nil, fmt.Errorf("%w by the pipeline", reference.ErrNotAllowed)
	}
	if within, _ := giturl.Best(a.b.Bases, base); len(a.b.Bases) > 0 && within < 0 {
		return "", nil, fmt.Errorf("%w by the daemon's configuration (remote_bases)", reference.ErrNotAllowed)
	}
	return url, a.list[i].SecretRef, nil
}

// fetchBase is a reference.Fetch.
func (a *allowedBases) fetchBase(ctx context.Context, base *remotebase.Base) (*tree.Tree, error) {
	url, ref, err := a.findRepository(&base.Address)
	if err != nil {
		return nil, err
	}
	commit, err := base.Commit()
	if err != nil {
		return nil, a.addCommitHint(ctx, url, ref, base, err)
	}
	var files *tree.Tree
	if base.Submodules {
		files, err = a.b.Repositories.FilesWithSubmodules(ctx, a.namespace, url, ref, commit, a.findSubmodule)
	} else {
		files, err = a.b.Repositories.Files(ctx, a.namespace, url, ref, commit)
	}
	if err != nil {
		return nil, &FetchError{err}
	}
	return files, nil
}

// findSubmodule returns how to fetch the repository of a submodule of a base. A submodule that is not allowed is
// left out: most builds do not need it, and a build that does is rejected when it reads from it.
func (a *allowedBases) findSubmodule(url string) (string, *meta.LocalObjectReference, bool) {
	repository, err := giturl.ParseAddress(url)
	if err != nil {
		return "", nil, false
	}
	fetch, ref, err := a.findRepository(&repository)
	return fetch, ref, err == nil
}

// addCommitHint adds the current commit of a branch or tag to the error that asks for one, if the repository
// reveals it.
func (a *allowedBases) addCommitHint(ctx context.Context, url string, ref *meta.LocalObjectReference, base *remotebase.Base, err error) error {
	if base.Ref == "" || !errors.Is(err, remotebase.ErrUnpinned) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	commit, failed := a.b.Repositories.Resolve(ctx, a.namespace, url, ref, base.Ref)
	if failed != nil || commit == "" {
		return err
	}
	return fmt.Errorf("%w; now that is ref=%s", err, commit)
}
