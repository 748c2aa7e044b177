// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Previous returns what a place holds of a pipeline, by paths relative to the entry's directory. Of a branch that
// results are published to at once, it is what the state records as published last: that is in the mirror already. A
// place that the state does not know is empty.
func (t *Targets) Previous(ctx context.Context, p *v1alpha1.RenderPipeline, to v1alpha1.Publish,
	state *status.State) (Holding, error) {
	revision := ""
	for _, one := range state.Status.Published {
		if one.Target == to.Target() {
			revision = one.Revision
		}
	}
	if revision == "" {
		return Holding{}, nil
	}
	if to.Git != nil && to.Git.Propose == nil && to.Git.PullRequest == nil {
		if held, err := t.previousOnBranch(ctx, p, to, revision); err == nil {
			return held, nil
		}
	}
	target, err := t.Open(ctx, p.Metadata.Namespace, to)
	if err != nil {
		return Holding{}, err
	}
	return target.Current(ctx, p.Key(), nil)
}

// previousOnBranch returns what a commit of a branch holds of a pipeline.
func (t *Targets) previousOnBranch(ctx context.Context, p *v1alpha1.RenderPipeline, to v1alpha1.Publish,
	revision string) (Holding, error) {
	g, _, err := t.openBranch(ctx, p.Metadata.Namespace, to)
	if err != nil {
		return Holding{}, err
	}
	commit, err := g.branch.Mirror.Fetch(ctx, g.branch.Remote, git.Ref{Commit: hashOf(revision)})
	if err != nil {
		return Holding{}, fmt.Errorf("reading what is published: %w", err)
	}
	owned, err := Published(tree.NewView(g.branch.Mirror.Tree(commit), t.limits), p.Key())
	if err != nil {
		return Holding{}, err
	}
	held := Holding{Files: map[string][]byte{}, Objects: owned.Objects}
	for name, content := range owned.Files {
		at, err := relativePath(to.Directory(), name)
		if err != nil {
			return Holding{}, err
		}
		held.Files[at] = content
	}
	return held, nil
}
