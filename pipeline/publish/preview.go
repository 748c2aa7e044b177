// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/review/diff"
	"github.com/prerig/prerig/pipeline/review/redact"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Bounds of a difference that is shown before something is done: files, bytes of all and of one, and the size of a file
// that is read.
const (
	maxPreviewFiles = 100
	maxPreviewBytes = 256 << 10
	maxPreviewPatch = 64 << 10
	maxPreviewInput = 2 << 20
)

// preview collects the difference of files. Values of Secrets are hidden: those who may look need not be those who may
// read Secrets.
type preview struct {
	target string
	diff   status.Diff
	size   int
}

func (p *preview) addFileDiff(name string, before, after []byte) {
	if len(p.diff.Files) >= maxPreviewFiles || p.size > maxPreviewBytes || len(before)+len(after) > maxPreviewInput {
		p.diff.LeftOut++
		return
	}
	one := status.FileDiff{Target: p.target, Path: name, Kind: "modified"}
	switch {
	case before == nil:
		one.Kind = "added"
	case after == nil:
		one.Kind = "deleted"
	}
	before, after = redact.Pair(before, after)
	patch := diff.Unified(name, []diff.Chunk{{Old: before, New: after}})
	if len(patch) > maxPreviewPatch {
		end := bytes.LastIndexByte(patch[:maxPreviewPatch], '\n') + 1
		one.LinesLeftOut = bytes.Count(patch[end:], []byte("\n"))
		patch = patch[:end]
	}
	one.Patch = string(patch)
	p.size += len(patch)
	p.diff.Files = append(p.diff.Files, one)
}

// PreviewRollback returns what reverting a commit of an entry's branch would change, and the first line of that
// commit. It does not write. The error is [ErrChangedSince] if the rollback would be rejected.
func (t *Targets) PreviewRollback(ctx context.Context, namespace string, to v1alpha1.Publish,
	commit string) (subject string, found *status.Diff, err error) {
	g, _, err := t.openBranch(ctx, namespace, to)
	if err != nil {
		return "", nil, err
	}
	r := &takingBack{branch: g.branch, commit: commit, draft: g.branch.Mirror.NewDraft()}
	if r.tip, err = g.branch.Mirror.Fetch(ctx, g.branch.Remote, git.Ref{Name: "refs/heads/" + g.branch.Name}); err != nil {
		return "", nil, fmt.Errorf("reading %s: %w", g.branch.Name, err)
	}
	if err := r.readPublication(ctx); err != nil {
		return "", nil, err
	}
	shown := &preview{target: to.Target()}
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		if isMeta(name) {
			continue
		}
		before, _, err := r.contentAtRoot(r.tip.Tree, name)
		if err != nil {
			return "", nil, err
		}
		after, _, err := r.contentAtRoot(git.Hash{}, name)
		if err != nil {
			return "", nil, err
		}
		shown.addFileDiff(name, before, after)
	}
	return foreign.Line(r.of.Subject, maxSubject), &shown.diff, nil
}

// PreviewPutBack returns what would change if a pipeline were published as it was last: what others have changed of its
// files since, the other way round. It is of branches alone.
func PreviewPutBack(ctx context.Context, targets *Targets, p *v1alpha1.RenderPipeline,
	state *status.State) (*status.Diff, error) {
	out := &status.Diff{}
	for _, to := range p.Spec.Publish {
		written := publishedToEntry(state, to, time.Now())
		if to.Git == nil || len(written.Record) == 0 || written.PullRequest != nil {
			continue
		}
		g, _, err := targets.openBranch(ctx, p.Metadata.Namespace, to)
		if err != nil {
			return nil, fmt.Errorf("looking at %s: %w", to.Target(), err)
		}
		shown := &preview{target: to.Target()}
		if err := g.previewPutBack(ctx, written, shown); err != nil {
			return nil, fmt.Errorf("looking at %s: %w", to.Target(), err)
		}
		out.Files, out.LeftOut = append(out.Files, shown.diff.Files...), out.LeftOut+shown.diff.LeftOut
	}
	return out, nil
}

func (g *gitTarget) previewPutBack(ctx context.Context, written Written, shown *preview) error {
	b := g.branch
	tip, err := b.Mirror.Fetch(ctx, b.Remote, git.Ref{Name: g.to.Git.Reference()})
	if err != nil {
		return err
	}
	last, err := b.Mirror.Fetch(ctx, b.Remote, git.Ref{Commit: hashOf(written.Revision)})
	if err != nil {
		return err
	}
	draft := b.Mirror.NewDraft()
	for _, one := range written.Record {
		if one.Op != tree.OpRead {
			continue
		}
		now, err := draft.File(tip.Tree, one.Path)
		if err != nil {
			return err
		}
		if now.String() == one.Outcome {
			continue
		}
		before, _, err := draft.Content(tip.Tree, one.Path)
		if err != nil {
			return err
		}
		after, _, err := draft.Content(last.Tree, one.Path)
		if err != nil {
			return err
		}
		shown.addFileDiff(one.Path, before, after)
	}
	return nil
}
