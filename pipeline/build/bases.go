// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	neturl "net/url"
	"path"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/render/remotebase"
	"github.com/prerig/prerig/pipeline/source/chart"
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
	// Resolve returns the current commit of a branch or tag, or "" if it does not exist, and whether it is a tag.
	Resolve(ctx context.Context, namespace, url string, ref *meta.LocalObjectReference, name string) (commit string, tag bool, err error)
}

// FetchError is about a remote base or a chart that is allowed and could not be fetched. Trying again can help.
type FetchError struct{ Err error }

// Error returns the message of the cause.
func (e *FetchError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FetchError) Unwrap() error { return e.Err }

// fetchTimeout bounds the fetches for one build.
const fetchTimeout = 2 * time.Minute

// remoteFetch adds the remote bases and files, and the charts of repositories, that a build needs to its files and its request.
type remoteFetch struct {
	b       *Builder
	p       *v1alpha1.RenderPipeline
	view    *tree.View
	request *render.Request
	files   tree.Reader // with what was added
	// bases are the patterns of spec.build.remoteBases, and lock the lock after it was read.
	bases []giturl.Pattern
	lock  *sourceLock
	// resolve asks servers for what is not locked; nil has it an error.
	resolve *resolution
}

func (b *Builder) newRemoteFetch(p *v1alpha1.RenderPipeline, view *tree.View, request *render.Request) (*remoteFetch, error) {
	f := &remoteFetch{b: b, p: p, view: view, request: request, files: view}
	for i, one := range p.Spec.Build.RemoteBases {
		pattern, err := giturl.ParsePattern(one.URL)
		if err != nil {
			return nil, fmt.Errorf("reading spec.build.remoteBases[%d].url: %w", i, err)
		}
		f.bases = append(f.bases, pattern)
	}
	return f, nil
}

// addNamedBases adds the remote bases and files that the kustomizations of the source name. The pipeline decides which may be fetched,
// and it is not part of the source.
func (f *remoteFetch) addNamedBases(ctx context.Context) error {
	if len(f.bases) == 0 && !f.b.AnyRemote {
		return nil // the renderer refuses all
	}
	bounded, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	found, files, err := reference.FindBases(bounded, f.view, *f.request, f.fetchBase)
	if err != nil {
		if bounded.Err() != nil && ctx.Err() == nil {
			err = &FetchError{err}
		}
		return err
	}
	f.request.Bases, f.files = found, files
	return nil
}

// addBases adds remote bases and files that the renderer wants. What cannot be had fails the units that need it.
func (f *remoteFetch) addBases(ctx context.Context, wanted []render.WantedBase) error {
	if len(wanted) == 0 {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	mounts := tree.NewMounts(f.files)
	for _, one := range wanted {
		var base *remotebase.Base
		if !remotebase.IsFile(one.URL) {
			var err error
			if base, err = remotebase.Parse(one.URL); err != nil {
				return err // the renderer has read it
			}
		}
		fetched, err := f.fetchBase(bounded, one.URL, base)
		if err != nil {
			err = reference.RefuseFetch(one.Where, one.URL, err)
			if errors.As(err, new(*FetchError)) && !f.request.Review {
				return err
			}
			f.request.MissingBases = append(f.request.MissingBases, render.MissingBase{Name: one.Name, Reason: err.Error()})
			continue
		}
		one.Locked = fetched.Locked
		f.request.Bases = append(f.request.Bases, one.Base)
		mounts.Add(one.Name, f.view.Beside(fetched.Files))
	}
	f.files = mounts
	return nil
}

// findRepository returns how a repository is to be fetched. An error is reference.ErrNotAllowed.
func (f *remoteFetch) findRepository(base *giturl.Address) (string, *meta.LocalObjectReference, error) {
	i, url := giturl.Best(f.bases, base)
	if within, _ := giturl.Best(f.b.Bases, base); len(f.b.Bases) > 0 && within < 0 && i >= 0 {
		return "", nil, fmt.Errorf("%w by the daemon's configuration (remote_bases)", reference.ErrNotAllowed)
	}
	switch {
	case i >= 0:
		return url, f.p.Spec.Build.RemoteBases[i].SecretRef, nil
	case f.b.AnyRemote:
		return base.String(), nil, nil
	}
	return "", nil, fmt.Errorf("%w by the pipeline", reference.ErrNotAllowed)
}

// fetchBase is a reference.Fetch.
func (f *remoteFetch) fetchBase(ctx context.Context, entry string, base *remotebase.Base) (reference.Fetched, error) {
	if base == nil {
		return f.fetchFile(ctx, entry)
	}
	url, ref, err := f.findRepository(&base.Address)
	if err != nil {
		return reference.Fetched{}, err
	}
	if f.b.Repositories == nil {
		return reference.Fetched{}, errors.New("remote bases cannot be fetched here")
	}
	commit, err := f.commitOf(ctx, url, ref, base)
	if err != nil {
		return reference.Fetched{}, err
	}
	fetched := reference.Fetched{Locked: commit}
	if base.Submodules {
		fetched.Files, err = f.b.Repositories.FilesWithSubmodules(ctx, f.p.Metadata.Namespace, url, ref, commit, f.findSubmodule)
	} else {
		fetched.Files, err = f.b.Repositories.Files(ctx, f.p.Metadata.Namespace, url, ref, commit)
	}
	if err != nil && base.Ref != commit {
		err = fmt.Errorf("%w (it is the commit that %s has for %s; if the repository does not have it any more, review what is there now and run prerig lock)",
			err, f.p.Spec.Build.ChartLock, cmp.Or(base.Ref, "HEAD"))
	}
	if err != nil {
		return reference.Fetched{}, &FetchError{err}
	}
	return fetched, nil
}

// findSubmodule returns how to fetch the repository of a submodule of a base. A submodule that is not allowed is
// left out: most builds do not need it, and a build that does is rejected when it reads from it.
func (f *remoteFetch) findSubmodule(url string) (string, *meta.LocalObjectReference, bool) {
	repository, err := giturl.ParseAddress(url)
	if err != nil {
		return "", nil, false
	}
	fetch, ref, err := f.findRepository(&repository)
	return fetch, ref, err == nil
}

// commitOf returns the commit of a base: that of its entry, or else that of the lock.
func (f *remoteFetch) commitOf(ctx context.Context, url string, ref *meta.LocalObjectReference, base *remotebase.Base) (string, error) {
	commit, unpinned := base.Commit()
	if unpinned == nil {
		return commit, nil
	}
	lock, err := f.readLock()
	if err != nil {
		return "", err
	}
	locked := lock.FindBase(base.Address, base.Ref)
	if f.resolve != nil {
		return f.resolve.resolveBase(locked, base, func() (string, bool, error) {
			return f.b.Repositories.Resolve(ctx, f.p.Metadata.Namespace, url, ref, cmp.Or(base.Ref, "HEAD"))
		})
	}
	if locked == nil {
		return "", fmt.Errorf("%w, and %s does not lock it: %s", unpinned, lock.describe(), reference.LockHint)
	}
	return locked.Commit, nil
}

// fetchFile fetches a file that a kustomization loads over HTTP.
func (f *remoteFetch) fetchFile(ctx context.Context, url string) (fetched reference.Fetched, err error) {
	from, err := f.findFileServer(url)
	if err != nil {
		return fetched, err
	}
	if f.b.Charts == nil {
		return fetched, errors.New("remote files cannot be fetched here")
	}
	lock, err := f.readLock()
	if err != nil {
		return fetched, err
	}
	locked := lock.FindFile(url)
	fetch := func(digest string) ([]byte, error) {
		content, err := f.b.Charts.File(ctx, f.p.Metadata.Namespace, from, v1alpha1.LockedFile{URL: url, Digest: digest})
		if err != nil && !chart.IsPermanent(err) {
			err = &FetchError{err}
		}
		return content, err
	}
	var content []byte
	switch {
	case f.resolve != nil:
		content, err = f.resolve.resolveFile(locked, url, fetch)
	case locked != nil:
		content, err = fetch(locked.Digest)
	default:
		err = fmt.Errorf("%w: %s does not lock the digest of the file: %s", remotebase.ErrUnpinned, lock.describe(), reference.LockHint)
	}
	if err != nil {
		return fetched, err
	}
	fetched.Locked = chart.DigestOf(content)
	builder := tree.NewBuilder(tree.Limits{})
	err = builder.Add(render.BaseFile, tree.File, content)
	fetched.Files = builder.Build()
	return fetched, err
}

// findFileServer returns the place below which a file is, with the secret for it: an entry of spec.build.remoteBases that the URL is below.
func (f *remoteFetch) findFileServer(raw string) (from v1alpha1.ChartRepository, err error) {
	at, err := neturl.Parse(raw)
	if err != nil || at.User != nil {
		return from, fmt.Errorf("%w: its URL cannot be read, or has credentials", reference.ErrNotAllowed)
	}
	parent := *at
	parent.RawQuery, parent.Fragment = "", ""
	for parent.Path != "/" && parent.Path != "." && parent.Path != "" {
		if address, err := giturl.ParseAddress(parent.String()); err == nil {
			if _, ref, err := f.findRepository(&address); err == nil {
				return v1alpha1.ChartRepository{URL: address.String(), SecretRef: ref}, nil
			}
		}
		parent.Path, parent.RawPath = path.Dir(parent.Path), ""
	}
	return from, fmt.Errorf("%w by the pipeline", reference.ErrNotAllowed)
}
