// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/backoff"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// PullRequest is a branch that Prerig proposes to with a pull request of its own. The head has one commit, on top
// of the newest base, with the results of all pipelines of a group that the base does not hold. The state of both
// is read from Git and from the host each time, so that an interrupted run is resumed.
type PullRequest struct {
	// Base is the branch that the pull request targets.
	Base *Branch
	// Head is the branch that it is from, without refs/heads/.
	Head string
	// Host is where the pull request is.
	Host pullrequest.Host
	// Labels are put on it.
	Labels []string
	// Turn returns whose turn it is among waves; nil without waves.
	Turn func(ctx context.Context, revision string) (Turn, error)
	// OfOneCommit reports whether all results are of one commit of the source.
	OfOneCommit bool
}

// Waiting is what waits for people after a look at a pull request.
type Waiting struct {
	// Request is the newest pull request, or nil if none was ever opened.
	Request *pullrequest.Request
	// State is one of v1alpha1.PullRequestOpen, Closed and Edited, or "" if no result waits.
	State string
	// Head is the branch; HeadCommit and BaseCommit are where it and the base are, zero where they do not exist.
	Head                   string
	HeadCommit, BaseCommit git.Hash
	// Message describes what to do, unless that is obvious.
	Message string
	// Pipelines are those whose results wait. It is nil where that is not known.
	Pipelines map[string]bool
}

// ErrEdited is the cause of an error about a head that others have pushed to. Their commits are never overwritten.
var ErrEdited = errors.New("merge or close the pull request and delete its branch, or take the commits off it, and the newest result is proposed")

// errAgain asks for another look: what was true when it began is not any more.
var errAgain = errors.New("the pull request was closed or merged meanwhile")

// errBegun asks for a look at a branch that was begun.
var errBegun = errors.New("the branch was begun")

func (p *PullRequest) headRef() string { return "refs/heads/" + p.Head }

// Publish moves the pull request to what the changes want, together with the waiting results of other pipelines.
// Without changes it only checks: a head whose base has moved is rebuilt, and a pull request without remaining
// changes is closed. A rejected change leaves the waiting result of its pipeline as it is.
func (p *PullRequest) Publish(ctx context.Context, changes []Change) (Result, error) {
	attempts := p.Base.Attempts
	if attempts == 0 {
		attempts = 10
	}
	moved, begun, sure := false, false, int64(0)
	for try := 1; ; try++ {
		result, err := p.reconcileOnce(ctx, changes, sure)
		if err == nil {
			result.Changed = result.Changed || moved
			return result, nil
		}
		begun = begun || errors.Is(err, errBegun)
		moves := errors.Is(err, git.ErrMoved) || errors.Is(err, errAgain) || errors.Is(err, pullrequest.ErrChanged)
		moves = moves || begun && pullrequest.IsNotFound(err) // Gitea needs a moment to notice that a repository is no longer empty
		if !moves || try == attempts {
			return result, err
		}
		if errors.Is(err, errAgain) {
			moved, sure = true, result.Waiting.Request.Number
		}
		if err := backoff.Wait(ctx, backoff.Delay(100*time.Millisecond, 10*time.Second, try)); err != nil {
			return result, err
		}
	}
}

// round is one look and what follows from it.
type round struct {
	p       *PullRequest
	push    *git.Push
	draft   *git.Draft
	request *pullrequest.Request
	base    branchHead
	head    *headCommit // nil if none exists
	turn    Turn
	sure    int64 // the number of a pull request that was closed before what is wanted was pushed, 0 for none

	edit    *branchEdit
	wanted  git.Hash // the root directory of the next head
	differs map[string]git.FileChange
	changed []Change // those of this round that differ from the base, then those that wait already
	result  Result
}

// reconcileOnce is one attempt.
func (p *PullRequest) reconcileOnce(ctx context.Context, changes []Change, sure int64) (Result, error) {
	r := &round{p: p, sure: sure, result: Result{Branch: p.Base.Target(), Waiting: &Waiting{Head: p.Head}}}
	type found struct {
		request *pullrequest.Request
		err     error
	}
	finding := make(chan found, 1)
	go func() {
		request, err := p.Host.Find(ctx, p.Head, p.Base.Name)
		finding <- found{request, err}
	}()
	push, err := p.Base.Remote.BeginPush(ctx)
	answer := <-finding
	if err != nil {
		return r.result, err
	}
	defer push.Close()
	// Gitea knows no pull requests of a repository without any branch, which is begun below.
	if answer.err != nil && !(len(push.Refs().ByName) == 0 && pullrequest.IsNotFound(answer.err)) {
		return r.result, fmt.Errorf("looking for the pull request from %s: %w", p.Head, answer.err)
	}
	r.push, r.request = push, answer.request
	r.result.Waiting.Request = answer.request
	if err := r.readBranches(ctx, changes); err != nil {
		return r.result, err
	}
	if r.base.parent.IsZero() {
		return r.result, nil // without changes no branch has to be started
	}
	if err := r.acquireTurns(ctx, changes); err != nil {
		return r.result, err
	}
	if err := p.Base.refreshGateInputs(ctx, changes); err != nil {
		return r.result, err
	}
	if err := r.computeNextHead(changes); err != nil {
		return r.result, err
	}
	if len(changes) > 0 && r.allChangesRefused() {
		return r.result, nil
	}
	err = r.applyNextHead(ctx)
	return r.result, err
}

// readBranches reads where base and head are. A base that does not exist is begun with Prerig's marker alone, as hosts
// take no pull request to nowhere.
func (r *round) readBranches(ctx context.Context, changes []Change) (err error) {
	p, refs := r.p, r.push.Refs()
	r.draft = p.Base.Mirror.NewDraft()
	if r.base, err = p.Base.findHead(ctx, refs); err != nil {
		return fmt.Errorf("publishing to %s: %w", p.Base.Target(), err)
	}
	r.result.Before, r.result.Waiting.BaseCommit = r.base.parent, r.base.parent
	if r.base.parent.IsZero() {
		if len(changes) == 0 || changes[0].movesToOtherPullRequest {
			return nil
		}
		// The branch starts empty, so all pipelines that have published to it would lose their content.
		if err := p.Base.checkDeleted(ctx, r.base, nil, changes); err != nil {
			return err
		}
		return r.beginBase(ctx, changes[0].Origin.Date)
	}
	if tip := refs.ByName[p.headRef()]; !tip.IsZero() {
		if r.head, err = p.readHead(ctx, tip); err != nil {
			return fmt.Errorf("reading %s: %w", p.Head, err)
		}
		r.result.Waiting.HeadCommit = tip
	}
	return nil
}

func (r *round) beginBase(ctx context.Context, date time.Time) error {
	b := r.p.Base
	if err := blockingBranchError(r.push.Refs(), b.Target()); err != nil {
		return fmt.Errorf("beginning %s: %w", b.Target(), err)
	}
	root, err := r.draft.Edit(git.Hash{}, map[string][]byte{markerFile: []byte(markerText)})
	if err != nil {
		return err
	}
	if date.IsZero() {
		date = time.Now()
	}
	commit, err := r.draft.Commit(git.CommitData{Tree: root, Author: b.Author, Email: b.Email, Date: date, Message: "Begin " + b.Name + "\n", Signer: b.Signer})
	if err != nil {
		return err
	}
	if err := r.pushReferenceUpdates(ctx, []git.Update{{Name: b.Target(), New: commit}}, commit); err != nil {
		return fmt.Errorf("beginning %s: %w", b.Target(), err)
	}
	return fmt.Errorf("%s: %w: %w", b.Name, errBegun, git.ErrMoved)
}

// computeNextHead works out the next head: what the changes want, and what waits of others.
func (r *round) computeNextHead(changes []Change) error {
	r.edit = newEdit(r.draft, r.base.root, r.p.Base.Attester)
	waiting := waitingResults{draft: r.draft, branch: r.p.Head, head: r.head, base: r.base.root, adopt: r.p.Base.Adopt}
	waits, err := waiting.byPipeline()
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.movesToOtherPullRequest {
			delete(waits, c.Pipeline)
			r.result.Outcomes = append(r.result.Outcomes, Outcome{Pipeline: c.Pipeline})
			continue
		}
		if c.waitReason != "" {
			r.result.Outcomes = append(r.result.Outcomes, Outcome{Pipeline: c.Pipeline, Held: c.waitReason})
			continue
		}
		outcome := r.edit.applyChange(c, nil)
		r.result.Outcomes = append(r.result.Outcomes, outcome)
		if outcome.Changed() {
			r.changed = append(r.changed, c)
		}
		if outcome.Err == nil {
			delete(waits, c.Pipeline)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(waits)) {
		c := waits[name]
		if r.p.OfOneCommit && len(changes) > 0 {
			c.Origin = changes[0].Origin
		}
		// One that cannot be kept has lost its files to a change of now.
		if outcome := r.edit.applyChange(c, nil); outcome.Changed() {
			r.changed = append(r.changed, c)
		}
	}
	r.wanted = r.base.root
	if len(r.changed) > 0 {
		r.edit.files[markerFile] = []byte(markerText)
		if r.wanted, err = r.draft.Edit(r.base.root, r.edit.files); err != nil {
			return err
		}
	}
	if r.differs, err = r.draft.Changes(r.base.root, r.wanted); err != nil {
		return err
	}
	delete(r.differs, markerFile)
	r.result.Waiting.Pipelines = map[string]bool{}
	for _, c := range r.changed {
		r.result.Waiting.Pipelines[c.Pipeline] = true
	}
	return nil
}

func (r *round) allChangesRefused() bool {
	for _, outcome := range r.result.Outcomes {
		if outcome.Err == nil {
			return false
		}
	}
	return true
}

// closedMessage describes what happens to a declined result.
const closedMessage = "a person has closed it: what it held is not proposed again, and a result that differs is, in a new one"

// applyNextHead brings head and pull request to what is wanted.
func (r *round) applyNextHead(ctx context.Context) error {
	if r.head != nil && !r.head.ours && !r.isConsumed() {
		return r.leaveEditedHead()
	}
	if len(r.differs) == 0 {
		return r.closeAndDeleteHead(ctx)
	}
	declined, err := r.isDeclined(ctx)
	if err != nil {
		return err
	}
	w := r.result.Waiting
	if declined {
		w.State = v1alpha1.PullRequestClosed
		w.Message = closedMessage
		return nil
	}
	w.State = v1alpha1.PullRequestOpen
	if !r.turn.Open {
		if err := r.awaitTurn(ctx); err != nil {
			return err
		}
	}
	pushed, err := r.pushHead(ctx)
	if err != nil || !r.turn.Open {
		return err
	}
	return r.createOrUpdateRequest(ctx, pushed)
}

// isConsumed reports whether what others have pushed to the head is merged.
func (r *round) isConsumed() bool {
	return r.request != nil && r.request.State == pullrequest.StateMerged &&
		r.request.HeadCommit == r.head.commit.Hash.String()
}

// leaveEditedHead leaves a head with commits of others. That is an error only for changes that it does not contain.
func (r *round) leaveEditedHead() error {
	w := r.result.Waiting
	c := r.head.commit
	w.State, w.Pipelines = v1alpha1.PullRequestEdited, nil
	w.Message = editedMessage(r.p.Head, c)
	holds, err := r.hasAllWanted(c.Tree)
	if err != nil || holds {
		return err
	}
	return fmt.Errorf("publishing to %s: %s: %w", r.p.Head, w.Message, ErrEdited)
}

// hasAllWanted reports whether a root directory has all that is wanted and the base does not have.
func (r *round) hasAllWanted(root git.Hash) (bool, error) {
	for name, change := range r.differs {
		now, err := r.draft.File(root, name)
		if err != nil || now != change.New {
			return false, err
		}
	}
	return true, nil
}
