// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/pipeline/status"
)

// driftCheck finds out whether published files are still what they were. It looks at each branch once.
type driftCheck struct {
	fetcher *source.Fetcher
	heads   map[string]*tree.Tree
}

func newDrift(f *source.Fetcher) *driftCheck {
	return &driftCheck{fetcher: f, heads: map[string]*tree.Tree{}}
}

// hasDrifted reports whether any place of a pipeline differs. One that cannot be looked at does not count: the run could do no more.
func (d *driftCheck) hasDrifted(ctx context.Context, p *v1alpha1.RenderPipeline, state *status.State) bool {
	for _, to := range p.Spec.Publish {
		record := state.Seen.Targets[to.Target()]
		if to.Git == nil || len(record) == 0 {
			continue
		}
		if now := d.branchFiles(ctx, p.Metadata.Namespace, to.Git); now != nil {
			if _, affected := record.Affected(now); affected {
				return true
			}
		}
	}
	return false
}

func (d *driftCheck) branchFiles(ctx context.Context, namespace string, to *v1alpha1.GitPublish) *tree.Tree {
	name := to.Reference()
	key := namespace + " " + to.URL + " " + name
	if known, ok := d.heads[key]; ok {
		return known
	}
	d.heads[key] = nil
	mirror, remote, err := d.fetcher.Repository(ctx, namespace, to.URL, to.SecretRef)
	if err != nil {
		return nil
	}
	commit, err := mirror.Fetch(ctx, remote, git.Ref{Name: name})
	if errors.Is(err, git.ErrNoRef) && to.Propose == nil {
		// Somebody has deleted the branch. That of a proposal is deleted by the host when it is merged.
		d.heads[key] = tree.NewBuilder(tree.Limits{}).Build()
		return d.heads[key]
	}
	if err != nil {
		return nil
	}
	d.heads[key] = mirror.Tree(commit)
	return d.heads[key]
}
