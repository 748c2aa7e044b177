// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"errors"
	"fmt"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Touched is a pipeline that a range of commits touches.
type Touched struct {
	// Pipeline is its key, Reason what it would see.
	Pipeline string `json:"pipeline"`
	Reason   string `json:"reason"`
}

// Range is two revisions of a repository.
type Range struct {
	// Base and Head are its files.
	Base, Head *tree.Tree
	// IsRepository reports whether a URL is one of the repository.
	IsRepository func(url string) bool
}

// Affected returns the pipelines whose render at the head could differ from the one at the base: each is rendered at
// the base, and what it has read is compared. Sources of other repositories are as they are now.
func (p *Renderer) Affected(ctx context.Context, entries []catalog.Entry, r Range) []Touched {
	found := forEachPipeline(ctx, p, entries, func(ctx context.Context, e catalog.Entry) *Touched {
		if r.Base.ID() == r.Head.ID() {
			return nil
		}
		base, err := p.sourcesAt(ctx, e, r, r.Base)
		var head *tree.Tree
		if err == nil {
			head, err = p.sourcesAt(ctx, e, r, r.Head)
		}
		if err != nil {
			return &Touched{Pipeline: e.Key, Reason: fmt.Sprintf("it could not be found out: %v", err)}
		}
		built, err := p.Builder.Build(e.Scope().Bind(ctx), e.Pipeline, base)
		if reason := reasonAffected(ctx, built, err, head); reason != "" {
			return &Touched{Pipeline: e.Key, Reason: reason}
		}
		return nil
	})
	out := []Touched{}
	for _, one := range found {
		if one != nil {
			out = append(out, *one)
		}
	}
	return out
}

// reasonAffected returns why a build, or the error that it ended with, could be another with other files; "" if it
// could not.
func reasonAffected(ctx context.Context, built *build.Built, err error, files *tree.Tree) string {
	if reason, affected := built.Record.Affected(files); affected {
		return reason
	}
	// An incomplete read leaves no complete record.
	if fetch := (*build.FetchError)(nil); errors.As(err, &fetch) || render.IsUnfinished(err) || err != nil && ctx.Err() != nil {
		return fmt.Sprintf("it could not be found out: %v", err)
	}
	return ""
}

// sourcesAt returns the sources of a pipeline with the repository's own at one of its revisions.
func (p *Renderer) sourcesAt(ctx context.Context, e catalog.Entry, r Range, files *tree.Tree) (*tree.Tree, error) {
	if len(e.Pipeline.Spec.Sources) == 0 {
		return files, nil
	}
	snapshot, err := p.fetchSources(ctx, e, func(one v1alpha1.NamedSource) *source.Snapshot {
		if one.Git != nil && IsNamed(e.Pipeline, one, r.IsRepository) {
			return &source.Snapshot{Tree: files, URL: one.URL()}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return snapshot.Tree, nil
}
