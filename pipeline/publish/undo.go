// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// undone is what others have changed of a pipeline's files on a branch, and a change undoes.
type undone struct {
	// commit is the newest of theirs, zero where it was not found, and subject its first line.
	commit  git.Hash
	subject string
	// alone reports whether that is all that the change does.
	alone bool
}

// maxUndone bounds how many commits are looked at for the one that is undone.
const maxUndone = 50

// findUndoneChanges computes what a change undoes. Unreadable parts are not named: they do not block publishing.
func (b *Branch) findUndoneChanges(ctx context.Context, e *branchEdit, at branchHead, c Change,
	outcome Outcome) *undone {
	if at.root.IsZero() || len(c.Written) == 0 {
		return nil
	}
	written := map[string]string{}
	for _, one := range c.Written {
		if one.Op == tree.OpRead {
			written[one.Path] = one.Outcome
		}
	}
	out := &undone{alone: len(outcome.Deleted) == 0 && !outcome.Ownership}
	theirs := map[string]bool{}
	for _, name := range slices.Concat(outcome.Added, outcome.Modified, outcome.Deleted) {
		now, err := e.draft.File(at.root, name)
		if err != nil {
			return nil
		}
		before, known := written[name]
		if known && before != now.String() {
			theirs[name] = true
		}
		out.alone = out.alone && known && git.BlobHash(e.files[name]).String() == before
	}
	if len(theirs) == 0 {
		return nil
	}
	if commit := b.lastEdit(ctx, e.draft, at.parent, theirs); commit != nil {
		out.commit, out.subject = commit.Hash, commit.Subject
	}
	return out
}

// lastEdit returns the newest commit of a branch that is not Prerig's and changed one of the files, nil where none is
// found.
func (b *Branch) lastEdit(ctx context.Context, draft *git.Draft, tip git.Hash, files map[string]bool) *git.Commit {
	for left := maxUndone; left > 0 && !tip.IsZero(); left-- {
		at, err := b.Mirror.Fetch(ctx, b.Remote, git.Ref{Commit: tip})
		if err != nil || len(at.Parents) == 0 {
			return nil
		}
		before, err := b.Mirror.Fetch(ctx, b.Remote, git.Ref{Commit: at.Parents[0]})
		if err != nil {
			return nil
		}
		changes, err := draft.Changes(before.Tree, at.Tree)
		if err != nil {
			return nil
		}
		for name := range changes {
			if files[name] && !b.isPublish(at) {
				return at
			}
		}
		tip = before.Hash
	}
	return nil
}

// onlyUndo returns what changes undo, if that is all that they do.
func onlyUndo(changes []Change) *undone {
	for _, c := range changes {
		if c.undoes == nil || !c.undoes.alone || c.undoes.commit != changes[0].undoes.commit {
			return nil
		}
	}
	return changes[0].undoes
}

// undoSubject returns the first line of a commit that only undoes what others have changed.
func undoSubject(changes []Change, of *undone) string {
	what := path.Base(changes[0].Pipeline)
	if len(changes) > 1 {
		what = fmt.Sprintf("%d pipelines", len(changes))
	}
	if of.commit.IsZero() {
		return foreign.Line(fmt.Sprintf("Put back %s: undo what others have changed", what), maxSubject)
	}
	return foreign.Line(fmt.Sprintf("Put back %s: undo %.12s %q", what, of.commit, foreign.Line(withoutInstructions(of.subject), maxSubject/2)), maxSubject)
}
