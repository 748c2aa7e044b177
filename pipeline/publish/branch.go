// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/backoff"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/source/git"
)

// Branch is a branch that Prerig writes. Several changes can be published in one commit.
type Branch struct {
	// Mirror and Remote are the repository.
	Mirror *git.Mirror
	Remote *git.Remote
	// Name of the branch without refs/heads/. With Propose it is the active branch, and NAME-next is written.
	Name string
	// Propose asks for the contract of GitOps Promoter. ActivePath may be "".
	Propose    bool
	ActivePath string
	// Adopt accepts a branch that Prerig did not write.
	Adopt bool
	// Author and Email of commits.
	Author, Email string
	// Signer signs commits; nil leaves them unsigned.
	Signer git.Signer
	// Attester signs a statement about the files of each change, below StatementDir; nil makes none.
	Attester *ArtifactSigner
	// Attempts bounds how often a push is tried when the branch moves. Zero means ten.
	Attempts int
	// Refresh updates what the gates of changes read, before they are consulted; nil if the gates need no refresh.
	Refresh func(ctx context.Context) error
	// Publishers returns the pipelines that are known to have published to the branch. It is called if the branch
	// does not exist; nil means no pipelines.
	Publishers func(ctx context.Context) ([]string, error)
}

// Result of publishing.
type Result struct {
	// Branch that was written, in full.
	Branch string
	// Before is the commit that was compared with, zero where the branch did not exist and had no other to start at.
	Before git.Hash
	// Commit is the head of the branch afterwards, zero where the branch does not exist.
	Commit git.Hash
	// Changed reports whether a commit was made.
	Changed bool
	// Outcomes has one entry for each change, in their order.
	Outcomes []Outcome
	// Waiting is what waits for people, nil where results are published at once.
	Waiting *Waiting
}

// ErrUnmanaged is the cause of an error about a branch that Prerig did not write.
var ErrUnmanaged = errors.New("the branch exists and is not written by Prerig (it has no " + markerFile +
	"); choose another one, or allow it with adopt")

// Publish moves the branch to what the changes want. It reads the branch, computes the difference and pushes one
// commit, which is accepted only if the branch has not moved meanwhile; otherwise it starts again from the new
// head. Without a difference, it makes no commit. Errors of single changes are in their outcomes.
func (b *Branch) Publish(ctx context.Context, changes []Change) (Result, error) {
	attempts := b.Attempts
	if attempts == 0 {
		attempts = 10
	}
	sent := map[git.Hash]Result{}
	for try := 1; ; try++ {
		result, err := b.publishOnce(ctx, changes)
		if earlier, ours := sent[result.Commit]; err == nil && !result.Changed && ours {
			// The branch has moved to where we have pushed it: only the answer was lost.
			return earlier, nil
		}
		if err == nil || !errors.Is(err, git.ErrMoved) || try == attempts {
			return result, err
		}
		sent[result.Commit] = result
		// Others get time to get their push through.
		if err := backoff.Wait(ctx, backoff.Delay(100*time.Millisecond, 10*time.Second, try)); err != nil {
			return result, err
		}
	}
}

// branchHead is the head that a commit is made on top of.
type branchHead struct {
	old    git.Hash // value of the branch, zero for a new one
	parent git.Hash // of the new commit
	root   git.Hash
	date   time.Time
}

// Target is the full name of the reference that is written.
func (b *Branch) Target() string {
	to := v1alpha1.GitPublish{Branch: b.Name}
	if b.Propose {
		to.Propose = &v1alpha1.Propose{ActivePath: b.ActivePath}
	}
	return to.Reference()
}

// refreshGateInputs brings what the gates of changes read up to date.
func (b *Branch) refreshGateInputs(ctx context.Context, changes []Change) error {
	if b.Refresh == nil || !slices.ContainsFunc(changes, func(c Change) bool { return c.Gate != nil }) {
		return nil
	}
	if err := b.Refresh(ctx); err != nil {
		return fmt.Errorf("publishing to %s: %w", b.Target(), err)
	}
	return nil
}

func (b *Branch) publishOnce(ctx context.Context, changes []Change) (Result, error) {
	result := Result{Branch: b.Target()}
	push, err := b.Remote.BeginPush(ctx)
	if err != nil {
		return result, err
	}
	defer push.Close()
	at, err := b.findHead(ctx, push.Refs())
	if err != nil {
		return result, fmt.Errorf("publishing to %s: %w", result.Branch, err)
	}
	draft := b.Mirror.NewDraft()
	if err := b.checkManaged(draft, at); err != nil {
		return result, fmt.Errorf("publishing to %s: %w", result.Branch, err)
	}
	if err := b.refreshGateInputs(ctx, changes); err != nil {
		return result, err
	}
	e := newEdit(draft, at.root, b.Attester)
	var changed []Change
	for _, c := range changes {
		var extra map[string][]byte
		if b.Propose {
			if extra, err = b.hydratorFiles(c); err != nil {
				return result, err
			}
		}
		outcome := e.applyChange(c, extra)
		if outcome.Changed() {
			c.undoes = b.findUndoneChanges(ctx, e, at, c, outcome)
			changed = append(changed, c)
		}
		result.Outcomes = append(result.Outcomes, outcome)
	}
	if len(changed) > 0 {
		if err := b.checkDeleted(ctx, at, changed, changes); err != nil {
			return result, err
		}
	}
	result.Before, result.Commit = at.parent, at.old
	updates, commit, err := b.commitChanges(draft, e, at, changed, push.Refs())
	if err != nil {
		return result, err
	}
	if !commit.IsZero() {
		result.Commit, result.Changed = commit, true
	}
	if b.Propose {
		more, err := b.attachSourceNote(ctx, draft, push.Refs(), result, changes)
		if err != nil {
			return result, err
		}
		updates = append(updates, more...)
	}
	return result, b.pushUpdates(ctx, push, draft, updates, result)
}

func (b *Branch) pushUpdates(ctx context.Context, push *git.Push, draft *git.Draft, updates []git.Update,
	result Result) error {
	if len(updates) == 0 {
		return nil
	}
	var pack bytes.Buffer
	if err := draft.Pack(&pack); err != nil {
		return err
	}
	if err := watchdog.Check(ctx); err != nil {
		return err
	}
	if err := push.Send(ctx, updates, &pack); err != nil {
		return err
	}
	if !result.Changed {
		return nil
	}
	// The branch is written; what the mirror keeps only saves the next fetch.
	_ = draft.Keep(ctx, result.Commit)
	return nil
}

// findHead finds out where the branch is. A proposed branch that does not exist starts at the active one, so that the
// difference between them is what is proposed.
func (b *Branch) findHead(ctx context.Context, refs git.Refs) (branchHead, error) {
	var at branchHead
	at.old = refs.ByName[b.Target()]
	if at.parent = at.old; at.parent.IsZero() && b.Propose {
		at.parent = refs.ByName["refs/heads/"+b.Name]
	}
	if at.parent.IsZero() {
		return at, nil
	}
	commit, err := b.Mirror.Fetch(ctx, b.Remote, git.Ref{Commit: at.parent})
	if err != nil {
		return at, err
	}
	at.root, at.date = commit.Tree, commit.Date
	return at, nil
}

// checkManaged rejects a branch that Prerig does not manage.
func (b *Branch) checkManaged(draft *git.Draft, at branchHead) error {
	if at.old.IsZero() || b.Adopt {
		return nil
	}
	marker, err := draft.File(at.root, markerFile)
	if err == nil && marker.IsZero() {
		return ErrUnmanaged
	}
	return err
}

// commitChanges makes the commit of all changes, and returns no update without a difference.
func (b *Branch) commitChanges(draft *git.Draft, e *branchEdit, at branchHead, changed []Change,
	refs git.Refs) ([]git.Update, git.Hash, error) {
	if len(changed) == 0 {
		return nil, git.Hash{}, nil
	}
	if err := blockingBranchError(refs, b.Target()); err != nil {
		return nil, git.Hash{}, fmt.Errorf("publishing to %s: %w", b.Target(), err)
	}
	e.files[markerFile] = []byte(markerText)
	root, err := draft.Edit(at.root, e.files)
	if err != nil {
		return nil, git.Hash{}, err
	}
	text := commitMessage(changed, b.Name)
	data := git.CommitData{Tree: root, Author: b.Author, Email: b.Email, Date: at.date, Message: text, Signer: b.Signer}
	for _, c := range changed {
		// The newest of what went in, and never before the parent, so that the history stays in order.
		if c.Origin.Date.After(data.Date) {
			data.Date = c.Origin.Date
		}
	}
	if data.Date.IsZero() {
		data.Date = time.Now()
	}
	if !at.parent.IsZero() {
		data.Parents = []git.Hash{at.parent}
	}
	commit, err := draft.Commit(data)
	if err != nil {
		return nil, git.Hash{}, err
	}
	return []git.Update{{Name: b.Target(), Old: at.old, New: commit}}, commit, nil
}
