// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/remotebase"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Repositories gives the files of repositories. source.Fetcher is one.
type Repositories interface {
	// Files gives the files at an exact commit.
	Files(ctx context.Context, namespace, url string, ref *meta.LocalObjectReference, commit string) (*tree.Tree, error)
	// Resolve gives the commit that a branch or tag is at now, "" where there is none.
	Resolve(ctx context.Context, namespace, url string, ref *meta.LocalObjectReference, name string) (string, error)
}

// FetchError is about a remote base that is allowed and could not be fetched. Trying again can help.
type FetchError struct{ Err error }

// Error tells the cause.
func (e *FetchError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *FetchError) Unwrap() error { return e.Err }

// basesTimeout bounds the fetches for one build, resolveTimeout the question for a better error.
const (
	basesTimeout   = 2 * time.Minute
	resolveTimeout = 5 * time.Second
)

// bases fetches the remote bases that the pipeline allows. Which these are is the pipeline's to say, which is not part of
// the source.
func (b *Builder) bases(ctx context.Context, p *v1alpha1.RenderPipeline, view *tree.View, request *render.Request) (tree.Reader, error) {
	allowed := p.Spec.Build.RemoteBases
	if len(allowed) == 0 || b.Repositories == nil {
		return view, nil
	}
	patterns := make([]remotebase.Pattern, len(allowed))
	for i, one := range allowed {
		var err error
		if patterns[i], err = remotebase.ParsePattern(one.URL); err != nil {
			return nil, fmt.Errorf("reading spec.build.remoteBases[%d].url: %w", i, err)
		}
	}
	bounded, cancel := context.WithTimeout(ctx, basesTimeout)
	defer cancel()
	found, files, err := render.FindBases(bounded, view, *request, func(ctx context.Context, base *remotebase.Base) (*tree.Tree, error) {
		i, url := remotebase.Best(patterns, base)
		if i < 0 {
			return nil, fmt.Errorf("%w by the pipeline", render.ErrNotAllowed)
		}
		if within, _ := remotebase.Best(b.Bases, base); len(b.Bases) > 0 && within < 0 {
			return nil, fmt.Errorf("%w by the daemon's configuration (remote_bases)", render.ErrNotAllowed)
		}
		commit, err := base.Commit()
		if err != nil {
			return nil, b.pin(ctx, p.Metadata.Namespace, url, allowed[i].SecretRef, base, err)
		}
		fetched, err := b.Repositories.Files(ctx, p.Metadata.Namespace, url, allowed[i].SecretRef, commit)
		if err != nil {
			return nil, &FetchError{err}
		}
		return fetched, nil
	})
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = &FetchError{err}
	}
	request.Bases = found
	return files, err
}

// pin adds the commit that a branch or tag is at now to the error that asks for one, where the repository tells it.
func (b *Builder) pin(ctx context.Context, namespace, url string, ref *meta.LocalObjectReference, base *remotebase.Base, err error) error {
	if base.Ref == "" || !errors.Is(err, remotebase.ErrUnpinned) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	commit, failed := b.Repositories.Resolve(ctx, namespace, url, ref, base.Ref)
	if failed != nil || commit == "" {
		return err
	}
	return fmt.Errorf("%w; now that is ref=%s", err, commit)
}
