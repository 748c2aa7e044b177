// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/backoff"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/review"
	"github.com/prerig/prerig/pipeline/source/git"
)

// TakenBack is what became of a rollback.
type TakenBack struct {
	// Done reports whether the branch is as it was before, as far as the publication changed it.
	Done bool
	// Commit is the reverting commit, or zero if it existed already.
	Commit git.Hash
	// Request is its pull request, or nil if none exists.
	Request *pullrequest.Request
	// Files is how many files are restored.
	Files int
	// Edited describes what others have pushed to the branch of the pull request, which is then left as it is; ""
	// if they have not pushed.
	Edited string
}

// TakeBack reverts exactly what a commit of an entry's branch has changed, in one commit, or in a pull request if
// the entry uses them. It can be repeated: what is reverted already is left alone, and a pull request that a person
// has closed stays closed.
func (t *Targets) TakeBack(ctx context.Context, namespace string, to v1alpha1.Publish, commit,
	by string) (back TakenBack, err error) {
	g, host, err := t.openBranch(ctx, namespace, to)
	if err != nil {
		return back, err
	}
	locking, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	unlock, err := t.batcher.lock(locking, g.Key())
	if err != nil {
		return back, err
	}
	defer unlock()
	step := watchdog.Step{Name: watchdog.StepPublish, Subject: g.Key() + " rollback", Limit: publishTimeout}
	return watchdog.Run(ctx, t.watchdog, step, func(ctx context.Context) (TakenBack, error) {
		for try := 1; ; try++ {
			r := &takingBack{branch: g.branch, host: host, commit: commit, by: by}
			if to.Git.PullRequest != nil {
				r.labels = to.Git.PullRequest.Labels
			}
			back, err := r.attemptRollback(ctx)
			moved := errors.Is(err, git.ErrMoved) || errors.Is(err, pullrequest.ErrChanged)
			if !moved || try == 10 {
				return back, err
			}
			if err := backoff.Wait(ctx, backoff.Delay(100*time.Millisecond, 10*time.Second, try)); err != nil {
				return back, err
			}
		}
	})
}

// takingBack is one attempt of a rollback.
type takingBack struct {
	branch *Branch
	host   pullrequest.Host
	commit string
	by     string
	labels []string

	push  *git.Push
	draft *git.Draft
	tip   *git.Commit
	of    *Publication
	files map[string]git.Hash
}

func (r *takingBack) attemptRollback(ctx context.Context) (back TakenBack, err error) {
	b := r.branch
	if r.push, err = b.Remote.BeginPush(ctx); err != nil {
		return back, err
	}
	defer r.push.Close()
	r.draft = b.Mirror.NewDraft()
	if err := r.readBranchState(ctx); err != nil {
		return back, err
	}
	back.Files = len(r.files)
	if r.host != nil {
		if back.Request, err = r.host.Find(ctx, r.pullRequestBranch(), b.Name); err != nil {
			return back, fmt.Errorf("looking for the pull request from %s: %w", r.pullRequestBranch(), err)
		}
	}
	state := pullrequest.State("")
	if back.Request != nil {
		state = back.Request.State
	}
	if back.Done = len(r.files) == 0 || state == pullrequest.StateMerged; back.Done || state == pullrequest.StateClosed {
		return back, nil
	}
	root, err := r.draft.Restore(r.tip.Tree, r.files)
	if err != nil {
		return back, fmt.Errorf("taking back %.12s: %w", r.of.Commit, err)
	}
	if r.host == nil {
		back.Commit, err = r.commitAndPush(ctx, "refs/heads/"+b.Name, r.tip.Hash, root, "")
		back.Done = err == nil
		return back, err
	}
	return r.keepRollbackRequest(ctx, back, root)
}

// readBranchState reads the branch and what is to be restored.
func (r *takingBack) readBranchState(ctx context.Context) (err error) {
	b := r.branch
	tip := r.push.Refs().ByName["refs/heads/"+b.Name]
	if r.tip, err = b.Mirror.Fetch(ctx, b.Remote, git.Ref{Commit: tip}); err != nil {
		return fmt.Errorf("reading %s: %w", b.Name, err)
	}
	return r.readPublication(ctx)
}

// readPublication reads what is to be restored on the tip.
func (r *takingBack) readPublication(ctx context.Context) error {
	b := r.branch
	at, err := b.Mirror.Fetch(ctx, b.Remote, git.Ref{Commit: hashOf(r.commit)})
	if err != nil {
		return fmt.Errorf("reading %.12s: %w", r.commit, err)
	}
	var before *git.Commit
	if len(at.Parents) > 0 {
		if before, err = b.Mirror.Fetch(ctx, b.Remote, git.Ref{Commit: at.Parents[0]}); err != nil {
			return fmt.Errorf("reading what was before %.12s: %w", r.commit, err)
		}
	}
	if r.of, err = computePublication(r.draft, at, before); err != nil {
		return err
	}
	r.files, err = r.of.filesToRestore(r.draft, r.tip.Tree)
	return err
}

// pullRequestBranch returns the branch of the pull request.
func (r *takingBack) pullRequestBranch() string {
	return v1alpha1.RollbackHead(r.branch.Name, r.commit)
}

func (r *takingBack) rollbackSubject() string {
	return foreign.Line(fmt.Sprintf("Roll back %.12s: %s", r.commit, withoutInstructions(r.of.Subject)), maxSubject)
}

// commitAndPush commits a root directory on top of the branch, with further trailers, and moves a reference to it.
func (r *takingBack) commitAndPush(ctx context.Context, reference string, old, root git.Hash,
	trailers string) (git.Hash, error) {
	b := r.branch
	text := r.rollbackSubject() + "\n\n" + fmt.Sprintf("%s: %s\n", TrailerRollback, r.of.Commit)
	for _, name := range r.of.Pipelines[:min(len(r.of.Pipelines), maxNamed)] {
		text += fmt.Sprintf("%s: %s\n", TrailerPipeline, name)
	}
	if r.by != "" {
		text += fmt.Sprintf("%s-By: %s\n", TrailerRollback, foreign.Line(r.by, maxSubject))
	}
	text += trailers
	// The date of the branch: the same rollback is the same commit, so that one that is interrupted is not made twice.
	data := git.CommitData{Tree: root, Parents: []git.Hash{r.tip.Hash}, Author: b.Author, Email: b.Email,
		Date: r.tip.Date, Message: text, Signer: b.Signer}
	commit, err := r.draft.Commit(data)
	if err != nil || commit == old {
		return commit, err
	}
	p := &round{push: r.push, draft: r.draft}
	if err := p.pushReferenceUpdates(ctx, []git.Update{{Name: reference, Old: old, New: commit}}, commit); err != nil {
		return git.Hash{}, fmt.Errorf("publishing to %s: %w", shortReference(reference), err)
	}
	return commit, nil
}

// keepRollbackRequest keeps the pull request of the rollback.
func (r *takingBack) keepRollbackRequest(ctx context.Context, back TakenBack, root git.Hash) (TakenBack, error) {
	reference := "refs/heads/" + r.pullRequestBranch()
	if err := blockingBranchError(r.push.Refs(), reference); err != nil {
		return back, fmt.Errorf("publishing to %s: %w", r.pullRequestBranch(), err)
	}
	tip := r.push.Refs().ByName[reference]
	var err error
	if back.Edited, err = r.describeForeignEdits(ctx, tip); err != nil || back.Edited != "" {
		return back, err
	}
	trailers := fmt.Sprintf("%s: %s@sha1:%s\n%s: %s\n", trailerBase, r.branch.Name, r.tip.Hash, trailerTree, root)
	if back.Commit, err = r.commitAndPush(ctx, reference, tip, root, trailers); err != nil {
		return back, err
	}
	if back.Request != nil {
		return back, nil
	}
	body, err := r.rollbackDescription(ctx)
	if err != nil {
		return back, err
	}
	content := pullrequest.Content{Title: r.rollbackSubject(), Body: body, Labels: r.labels}
	back.Request, err = r.host.Create(ctx, r.pullRequestBranch(), r.branch.Name, content)
	if err != nil {
		return back, fmt.Errorf("opening a pull request from %s to %s: %w", r.pullRequestBranch(), r.branch.Name, err)
	}
	return back, nil
}

// describeForeignEdits describes what others have at the tip of the head, or returns "" if it is absent or exactly what
// was pushed for this rollback.
func (r *takingBack) describeForeignEdits(ctx context.Context, tip git.Hash) (string, error) {
	if tip.IsZero() {
		return "", nil
	}
	head, err := (&PullRequest{Base: r.branch, Head: r.pullRequestBranch()}).readHead(ctx, tip)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", r.pullRequestBranch(), err)
	}
	if head.ours && slices.Contains(head.trailers, TrailerRollback+": "+r.of.Commit.String()) {
		return "", nil
	}
	return editedMessage(r.pullRequestBranch(), head.commit), nil
}

// rollbackDescription returns what reviewers read of a rollback.
func (r *takingBack) rollbackDescription(ctx context.Context) (string, error) {
	var change review.Change
	index := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		owner := r.of.owners[name]
		if strings.HasPrefix(name, metaDir+"/") || owner == "" {
			continue
		}
		if _, ok := index[owner]; !ok {
			index[owner] = len(change.Pipelines)
			change.Pipelines = append(change.Pipelines,
				review.Pipeline{Name: owner, Before: map[string][]byte{}, After: map[string][]byte{}})
		}
		p := change.Pipelines[index[owner]]
		for _, side := range []struct {
			root git.Hash
			to   map[string][]byte
		}{{r.tip.Tree, p.Before}, {git.Hash{}, p.After}} {
			content, ok, err := r.contentAtRoot(side.root, name)
			if err != nil {
				return "", err
			}
			if ok {
				side.to[name] = content
			}
		}
	}
	intro := fmt.Sprintf("This reverts only %s. Its pipelines stay on hold until `prerig daemon promote`.\n\n", r.of.Commit)
	text, _, err := review.Body(ctx, change, max(1, r.host.MaxBody()-len(intro)))
	if err != nil {
		return "", fmt.Errorf("writing the text of the pull request: %w", err)
	}
	return intro + text, nil
}

// contentAtRoot returns a file as it is, or with the zero hash for a root as it is to be again.
func (r *takingBack) contentAtRoot(root git.Hash, name string) ([]byte, bool, error) {
	if root.IsZero() {
		restored, err := r.draft.Restore(git.Hash{}, map[string]git.Hash{name: r.files[name]})
		if err != nil || restored.IsZero() {
			return nil, false, err
		}
		root = restored
	}
	return r.draft.Content(root, name)
}
