// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"fmt"

	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// pushHead pushes the next head, unless the server already has it.
func (r *round) pushHead(ctx context.Context) (pushed bool, err error) {
	p := r.p
	follows := int64(0)
	if r.request != nil && r.request.State != pullrequest.StateOpen {
		follows = r.request.Number
	}
	if h := r.head; h != nil && h.ours && h.commit.Tree == r.wanted && h.base == r.base.parent && h.follows >= follows {
		r.result.Commit = h.commit.Hash
		return false, nil
	}
	if err := blockingBranchError(r.push.Refs(), p.headRef()); err != nil {
		return false, fmt.Errorf("publishing to %s: %w", p.Head, err)
	}
	commit, err := r.commitHead(follows)
	if err != nil {
		return false, err
	}
	old := r.push.Refs().ByName[p.headRef()]
	if err := r.pushReferenceUpdates(ctx, []git.Update{{Name: p.headRef(), Old: old, New: commit}}, commit); err != nil {
		return false, fmt.Errorf("publishing to %s: %w", p.Head, err)
	}
	if r.head, err = p.readHead(ctx, commit); err != nil {
		return false, fmt.Errorf("reading %s: %w", p.Head, err)
	}
	r.result.Commit, r.result.Changed, r.result.Waiting.HeadCommit = commit, true, commit
	return true, nil
}

// pushReferenceUpdates pushes new objects and moves references to them.
func (r *round) pushReferenceUpdates(ctx context.Context, updates []git.Update, commit git.Hash) error {
	var pack bytes.Buffer
	if err := r.draft.Pack(&pack); err != nil {
		return err
	}
	if err := watchdog.Check(ctx); err != nil {
		return err
	}
	if err := r.push.Send(ctx, updates, &pack); err != nil {
		return err
	}
	_ = r.draft.Keep(ctx, commit) // it only saves the next fetch
	return nil
}

// closeAndDeleteHead closes a pull request without remaining changes, and deletes the head. The body is updated first
// to record that Prerig closed it, so that it is not mistaken for a person's decision later.
func (r *round) closeAndDeleteHead(ctx context.Context) error {
	p, w := r.p, r.result.Waiting
	r.result.Commit = r.base.parent
	if open := r.request; open != nil && open.State == pullrequest.StateOpen {
		if err := r.closeByPrerig(ctx, open, "Nothing is left to review: "+p.Base.Name+" holds what is rendered now."); err != nil {
			return err
		}
	}
	if r.head == nil {
		return nil
	}
	if err := watchdog.Check(ctx); err != nil {
		return err
	}
	if err := r.push.Send(ctx, []git.Update{{Name: p.headRef(), Old: r.head.commit.Hash}}, nil); err != nil {
		return fmt.Errorf("deleting %s: %w", p.Head, err)
	}
	w.HeadCommit = git.Hash{}
	return nil
}
