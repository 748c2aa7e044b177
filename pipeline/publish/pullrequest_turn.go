// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// Turn is whether it is the turn of a wave.
type Turn struct {
	// Held is the reason why a result of a revision is not accepted now, or "" if it is: the waves carry another
	// revision, and their pipelines run again when these are through.
	Held string
	// Open reports whether the wave should have a pull request, and Message explains why not.
	Open    bool
	Message string
}

// Turns returns whose turn it is. revision is that of a result to be published, or "" for a look.
type Turns func(ctx context.Context, to *v1alpha1.GitPublish, head, revision string) (Turn, error)

// acquireTurns asks for the turn of each change, and marks those that have to wait.
func (r *round) acquireTurns(ctx context.Context, changes []Change) error {
	r.turn = Turn{Open: true}
	if r.p.Turn == nil {
		return nil
	}
	var err error
	known := map[string]Turn{}
	for i := range changes {
		revision := changes[i].Origin.Revision
		turn, ok := known[revision]
		if !ok && !changes[i].movesToOtherPullRequest {
			if turn, err = r.p.Turn(ctx, revision); err != nil {
				return fmt.Errorf("asking whose turn it is: %w", err)
			}
			known[revision] = turn
		}
		changes[i].waitReason = turn.Held
	}
	// What holds for the pull request is asked last: the changes may have begun a train.
	if r.turn, err = r.p.Turn(ctx, ""); err != nil {
		return fmt.Errorf("asking whose turn it is: %w", err)
	}
	return nil
}

// awaitTurn handles a wave that has to wait for its turn. If a pull request is still open because the waves have
// restarted, it is closed before anything is pushed to it: the body records that Prerig closed it, so that it is
// not mistaken for a person's decision.
func (r *round) awaitTurn(ctx context.Context) error {
	w := r.result.Waiting
	w.State, w.Message = v1alpha1.PullRequestWaiting, r.turn.Message
	if open := r.request; open != nil && open.State == pullrequest.StateOpen {
		if err := r.closeByPrerig(ctx, open, "It is not the turn of this wave yet, "+r.turn.Message+". A new pull request follows."); err != nil {
			return err
		}
	}
	w.Request = nil
	return nil
}

// closeByPrerig closes a pull request, after recording in its body that Prerig did so.
func (r *round) closeByPrerig(ctx context.Context, open *pullrequest.Request, comment string) error {
	p := r.p
	text := readBody(open.Body)
	text.marks.withdrawn = true
	content := pullrequest.Content{Title: open.Title, Body: text.assembleBody(text.ours, p.Host.MaxBody()), From: open}
	if content.Body != normalBody(open.Body) {
		if _, err := p.Host.Update(ctx, open.Number, content); err != nil {
			return fmt.Errorf("closing the pull request %d: %w", open.Number, err)
		}
	}
	if err := p.Host.Close(ctx, open.Number, comment); err != nil {
		return fmt.Errorf("closing the pull request %d: %w", open.Number, err)
	}
	r.result.Changed = true
	return nil
}

// Look brings the pull request from a head to where its branches want it, without a new result.
func (t *Targets) Look(ctx context.Context, namespace string, to v1alpha1.Publish, head string) (*Waiting, error) {
	target, err := t.openPull(ctx, namespace, to)
	if err != nil {
		return nil, err
	}
	return target.reconcileWithoutResult(ctx, head)
}

// Merger opens the host of an entry's pull requests.
func (t *Targets) Merger(ctx context.Context, namespace string, to v1alpha1.Publish) (pullrequest.Merger, error) {
	target, err := t.openPull(ctx, namespace, to)
	if err != nil {
		return nil, err
	}
	merger, ok := target.host.(pullrequest.Merger)
	if !ok {
		return nil, fmt.Errorf("merging at %s: this kind of host cannot be asked to", to.Target())
	}
	return merger, nil
}

// MergeUnderLock merges while no pipeline publishes to the branch: the merged commit is the one that the decision
// was about. Others may have held the lock for minutes: recheck decides again once the lock is held, and its error
// keeps the pull request open. The stored state may be older than a person's push, so the commit itself is checked
// to be Prerig's; if it is not, the error is [ErrEdited].
func (t *Targets) MergeUnderLock(
	ctx context.Context, namespace string, to v1alpha1.Publish, r *pullrequest.Request, method pullrequest.MergeMethod, recheck func(context.Context) error,
) (*pullrequest.Request, error) {
	target, err := t.openPull(ctx, namespace, to)
	if err != nil {
		return nil, err
	}
	merger, err := t.Merger(ctx, namespace, to)
	if err != nil {
		return nil, err
	}
	locking, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	unlock, err := t.batcher.lock(locking, target.Key())
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := recheck(locking); err != nil {
		return nil, err
	}
	if err := target.checkOwn(locking, r); err != nil {
		return nil, fmt.Errorf("merging pull request %d: %w", r.Number, err)
	}
	return merger.Merge(locking, r.Number, r.HeadCommit, method)
}

// checkOwn returns an error unless the commit that a pull request holds is Prerig's.
func (t *pullTarget) checkOwn(ctx context.Context, r *pullrequest.Request) error {
	tip := hashOf(r.HeadCommit)
	if tip.IsZero() {
		return fmt.Errorf("reading %s: the host reports no commit of it but %q", r.Head, r.HeadCommit)
	}
	head, err := t.requestFrom(r.Head).readHead(ctx, tip)
	switch {
	case err != nil:
		return fmt.Errorf("reading %s: %w", r.Head, err)
	case !head.ours:
		return fmt.Errorf("%s: %w", editedMessage(r.Head, head.commit), ErrEdited)
	}
	return nil
}

// BaseTip returns the newest commit of the branch that an entry publishes to, or "" if none exists.
func (t *Targets) BaseTip(ctx context.Context, namespace string, to v1alpha1.Publish) (string, error) {
	target, err := t.openPull(ctx, namespace, to)
	if err != nil {
		return "", err
	}
	refs, err := target.branch.Remote.List(ctx)
	if err != nil {
		return "", err
	}
	if tip := refs.ByName["refs/heads/"+target.branch.Name]; tip != (git.Hash{}) {
		return tip.String(), nil
	}
	return "", nil
}

func (t *Targets) openPull(ctx context.Context, namespace string, to v1alpha1.Publish) (*pullTarget, error) {
	opened, err := t.Open(ctx, namespace, to)
	if err != nil {
		return nil, err
	}
	if batched, ok := opened.(batchedTarget); ok {
		if target, ok := batched.Interface.(*pullTarget); ok && target.host != nil {
			return target, nil
		}
	}
	return nil, fmt.Errorf("%s is not published to by pull request", to.Target())
}
