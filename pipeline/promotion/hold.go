// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/publish"
)

// Hold stops pipelines from publishing, and keeps Prerig from merging what waits of them.
func (p *Promoter) Hold(ctx context.Context, pipelines []string, by, reason string) error {
	hold := &status.OnHold{Since: p.now().UTC(), By: by, Reason: status.OneLine(reason)}
	for _, key := range pipelines {
		err := p.Store.SetControl(ctx, key, func(c *status.Control) {
			if c.OnHold == nil || c.OnHold.Rollback == "" {
				c.OnHold = hold // that of a rollback is more specific
			}
		})
		if err != nil {
			return fmt.Errorf("putting %s on hold: %w", key, err)
		}
	}
	p.Wake()
	return nil
}

// Release ends the hold of pipelines, and returns those that were on hold. They must run again, as a rollback has
// left what is published behind the last render, which is not detected otherwise: the token of that request is
// stored together with the end of the hold.
func (p *Promoter) Release(ctx context.Context, pipelines []string, token string) (held []string, err error) {
	for _, key := range pipelines {
		was := false
		err := p.Store.SetControl(ctx, key, func(c *status.Control) {
			if was = c.OnHold != nil; was {
				c.OnHold, c.RequestedAt, c.Force = nil, token, true
			}
		})
		if err != nil {
			return held, fmt.Errorf("releasing %s: %w", key, err)
		}
		if was {
			held = append(held, key)
		}
	}
	return held, p.cancelRollbacks(ctx, held)
}

// cancelRollbacks ends rollbacks of pipelines that were not done yet.
func (p *Promoter) cancelRollbacks(ctx context.Context, pipelines []string) error {
	for _, r := range p.Store.Rollbacks() {
		if r.State != status.RollbackAsked || !slices.ContainsFunc(r.Pipelines, func(one string) bool { return slices.Contains(pipelines, one) }) {
			continue
		}
		err := p.Store.ChangeRollback(ctx, r.ID, func(r *status.Rollback) bool {
			if r.State != status.RollbackAsked {
				return false
			}
			r.State, r.Message = status.RollbackRefused, "a pipeline that it is about was promoted"
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ErrRolledBack is about a pipeline that was rolled back already.
var ErrRolledBack = errors.New("it was rolled back already and is on hold; name the commit to go back further, or promote it first")

// Rollback reverts the last publish of pipelines, or the named commit, wherever they publish to with Git. All
// pipelines that it had changed are put on hold, and may is called for each of them first.
func (p *Promoter) Rollback(ctx context.Context, pipelines []string, commit, by string, may func(pipeline string) error) ([]status.Rollback, error) {
	asked, err := p.findAllRollbacks(ctx, pipelines, commit, by, may)
	if err != nil {
		return nil, err
	}
	for i, one := range asked {
		done, err := p.beginRollback(ctx, one)
		if err != nil && done.ID == "" {
			return nil, err
		}
		asked[i] = done
		if err != nil {
			asked[i].Message = err.Error() // it is tried again
		}
	}
	p.Wake()
	return asked, nil
}

// RollbackPlan is what a rollback would do.
type RollbackPlan struct {
	status.Rollback
	// Subject is the first line of the commit. Diff is what would change, or nil if the rollback would be rejected,
	// as Message explains.
	Subject string       `json:"subject,omitempty"`
	Diff    *status.Diff `json:"diff,omitempty"`
}

// PlanRollback returns what Rollback would do, without doing it.
func (p *Promoter) PlanRollback(ctx context.Context, pipelines []string, commit string, may func(pipeline string) error) ([]RollbackPlan, error) {
	asked, err := p.findAllRollbacks(ctx, pipelines, commit, "", may)
	if err != nil {
		return nil, err
	}
	plans := make([]RollbackPlan, len(asked))
	for i, one := range asked {
		e, to := p.entryOf(one)
		if to == nil {
			return nil, fmt.Errorf("rolling back %s: it was changed meanwhile", one.Pipeline)
		}
		plans[i].Rollback = one
		plans[i].Subject, plans[i].Diff, err = p.Targets.PreviewRollback(ctx, e.Pipeline.Metadata.Namespace, *to, one.Commit)
		switch {
		case errors.Is(err, publish.ErrChangedSince):
			plans[i].State, plans[i].Message = status.RollbackRefused, err.Error()
		case err != nil:
			return nil, fmt.Errorf("rolling back %s: %w", one.Pipeline, err)
		default:
			plans[i].Files = len(plans[i].Diff.Files) + plans[i].Diff.LeftOut
		}
	}
	return plans, nil
}

// entryOf returns the pipeline of a rollback and the entry that it is about, or nil if the pipeline no longer has it.
func (p *Promoter) entryOf(r status.Rollback) (catalog.Entry, *v1alpha1.Publish) {
	e, ok := p.Catalog.Get(r.Pipeline)
	if !ok || e.Err != nil {
		return e, nil
	}
	at := slices.IndexFunc(e.Pipeline.Spec.Publish, func(to v1alpha1.Publish) bool { return to.Target() == r.Target })
	if at < 0 {
		return e, nil
	}
	return e, &e.Pipeline.Spec.Publish[at]
}

// findAllRollbacks finds what is taken back of pipelines, and asks may for all that this changes.
func (p *Promoter) findAllRollbacks(ctx context.Context, pipelines []string, commit, by string, may func(pipeline string) error) (asked []status.Rollback, err error) {
	for _, key := range pipelines {
		e, ok := p.Catalog.Get(key)
		if !ok || e.Err != nil {
			return nil, fmt.Errorf("rolling back %s: there is no such pipeline", key)
		}
		found, err := p.findRollbacks(ctx, e, commit, by)
		if err != nil {
			return nil, fmt.Errorf("rolling back %s: %w", key, err)
		}
		for _, one := range found {
			if slices.ContainsFunc(asked, func(other status.Rollback) bool { return other.ID == one.ID }) {
				continue
			}
			for _, other := range one.Pipelines {
				if err := may(other); err != nil {
					return nil, fmt.Errorf("rolling back %s: %.12s changed %s too: %w", key, one.Commit, other, err)
				}
			}
			asked = append(asked, one)
		}
	}
	return asked, nil
}

// findRollbacks finds what was last published of a pipeline, at all places that can be rolled back.
func (p *Promoter) findRollbacks(ctx context.Context, e catalog.Entry, commit, by string) (out []status.Rollback, err error) {
	if hold := p.Store.Control(e.Key).OnHold; hold != nil && hold.Rollback != "" && commit == "" {
		return nil, ErrRolledBack
	}
	var skip []string
	for _, r := range p.Store.Rollbacks() {
		skip = append(skip, r.Result)
	}
	nothing := error(publish.ErrNoRollback)
	for _, to := range e.Pipeline.Spec.Publish {
		found, err := p.Targets.FindPublication(ctx, e.Key, e.Pipeline.Metadata.Namespace, to, commit, skip)
		switch {
		case errors.Is(err, publish.ErrNoRollback):
			continue
		case errors.Is(err, publish.ErrNothingPublished):
			nothing = err
			continue
		case err != nil:
			return nil, err
		}
		sum := sha256.Sum256([]byte(v1alpha1.BranchKey(to.Git.URL, to.Git.Branch) + "\n" + found.Commit.String()))
		out = append(out, status.Rollback{
			ID: hex.EncodeToString(sum[:8]), Pipeline: e.Key, Target: to.Target(), Pipelines: found.Pipelines, Commit: found.Commit.String(),
			At: p.now().UTC(), By: by, State: status.RollbackAsked,
		})
	}
	if len(out) == 0 {
		return nil, nothing
	}
	return out, nil
}

// rollbackLock returns the name of the lock that serializes work on a rollback: a concurrent run would mistake the
// changes of the first for the original state.
func rollbackLock(id string) string { return "rollback/" + id }

// beginRollback stores a requested rollback and executes it. A rollback that was requested before and is not
// finished is continued. If it cannot be stored, the zero value is returned with the error.
func (p *Promoter) beginRollback(ctx context.Context, r status.Rollback) (status.Rollback, error) {
	unlock, err := p.Queue.Lock(ctx, rollbackLock(r.ID))
	if err != nil {
		return status.Rollback{}, err
	}
	defer unlock()
	err = p.Store.ChangeRollback(ctx, r.ID, func(stored *status.Rollback) bool {
		if stored.ID != "" && !stored.Ended() {
			r = *stored
			return false
		}
		// What took it back once may still do.
		r.Result, r.Number, r.URL, r.Files = stored.Result, stored.Number, stored.URL, stored.Files
		*stored = r
		return true
	})
	if err != nil {
		return status.Rollback{}, err
	}
	return p.executeRollback(ctx, r)
}

// finishRollback does what is left to do of a rollback, unless another is at it.
func (p *Promoter) finishRollback(ctx context.Context, id string) error {
	unlock, ok, err := p.Queue.TryLock(ctx, rollbackLock(id))
	if err != nil || !ok {
		return err
	}
	defer unlock()
	r, err := p.Store.LoadRollback(ctx, id) // what others have done of it since
	switch {
	case err != nil || r.ID == "":
	case r.State == status.RollbackRefused:
		err = p.liftHolds(ctx, r)
	case !r.Ended():
		_, err = p.executeRollback(ctx, r)
	}
	return err
}

// executeRollback does what is left to do of a rollback, and stores what became of it. An error is one that may pass. It is for who holds
// the lock.
func (p *Promoter) executeRollback(ctx context.Context, r status.Rollback) (status.Rollback, error) {
	e, to := p.entryOf(r)
	if to == nil {
		return p.endRollback(ctx, r, status.RollbackRefused, "the pipeline does not publish there any more")
	}
	if r.State == status.RollbackAsked {
		if err := p.holdRollbackPipelines(ctx, r); err != nil {
			return r, err
		}
		// A person may have promoted one of them just before.
		if now, err := p.Store.LoadRollback(ctx, r.ID); err != nil || now.State == status.RollbackRefused {
			return p.endUnless(ctx, err, r, now.Message)
		}
	}
	back, err := p.Targets.TakeBack(ctx, e.Pipeline.Metadata.Namespace, *to, r.Commit, r.By)
	if errors.Is(err, publish.ErrChangedSince) {
		return p.endRollback(ctx, r, status.RollbackRefused, err.Error())
	}
	if err != nil {
		return r, err
	}
	if !back.Commit.IsZero() {
		r.Result = back.Commit.String()
	}
	r.Files = max(r.Files, back.Files)
	if request := back.Request; request != nil {
		r.Number, r.URL = request.Number, request.URL
		if request.State == pullrequest.StateMerged && request.MergeCommit != "" {
			r.Result = request.MergeCommit
		}
	}
	switch {
	case back.Done:
		return p.endRollback(ctx, r, status.RollbackDone, "")
	case back.Request == nil: // others have something at the branch that it would be proposed from
		return p.endRollback(ctx, r, r.State, back.Edited+"; delete the branch, and the rollback is proposed")
	case back.Request.State == pullrequest.StateClosed:
		return p.endRollback(ctx, r, status.RollbackClosed, fmt.Sprintf("a person has closed pull request %d", r.Number))
	}
	message := fmt.Sprintf("pull request %d takes it back and waits for a merge", r.Number)
	if back.Edited != "" {
		message += "; " + back.Edited
	}
	return p.endRollback(ctx, r, status.RollbackOpen, message)
}

// holdRollbackPipelines puts the pipelines of a rollback on hold, including those that are currently deleted or
// invalid: they may come back.
func (p *Promoter) holdRollbackPipelines(ctx context.Context, r status.Rollback) error {
	hold := &status.OnHold{Since: r.At, By: r.By, Reason: fmt.Sprintf("%.12s was rolled back", r.Commit), Rollback: r.ID}
	for _, key := range r.Pipelines {
		err := p.Store.SetControl(ctx, key, func(c *status.Control) {
			if c.OnHold == nil || c.OnHold.Rollback == "" {
				c.OnHold = hold // otherwise that of an earlier one, which remains if this one is rejected
			}
		})
		if err != nil {
			return fmt.Errorf("putting %s on hold: %w", key, err)
		}
	}
	return nil
}

// endUnless ends a rollback that was refused meanwhile, unless that could not be asked.
func (p *Promoter) endUnless(ctx context.Context, err error, r status.Rollback, message string) (status.Rollback, error) {
	if err != nil {
		return r, err
	}
	return p.endRollback(ctx, r, status.RollbackRefused, message)
}

// endRollback stores the outcome of a rollback. A rejected rollback puts no pipeline on hold.
func (p *Promoter) endRollback(ctx context.Context, r status.Rollback, state, message string) (status.Rollback, error) {
	if state == status.RollbackRefused {
		if err := p.liftHolds(ctx, r); err != nil {
			return r, err
		}
	}
	changed := r.State != state || r.Message != message
	r.State, r.Message = state, message
	if changed {
		p.Log.Info("rollback", "commit", r.Commit, "target", r.Target, "state", state, "result", r.Result, "pull request", r.Number, "message", message)
	}
	err := p.Store.ChangeRollback(ctx, r.ID, func(stored *status.Rollback) bool {
		if equalRollback(*stored, r) {
			return false
		}
		*stored = r
		return true
	})
	return r, err
}

// liftHolds ends the hold of pipelines that a rollback was the cause of. This process may not know yet of one that was just stored.
func (p *Promoter) liftHolds(ctx context.Context, r status.Rollback) error {
	for _, key := range r.Pipelines {
		err := p.Store.ChangeControl(ctx, key, func(c *status.Control) bool {
			if c.OnHold == nil || c.OnHold.Rollback != r.ID {
				return false
			}
			c.OnHold = nil
			return true
		})
		if err != nil {
			return fmt.Errorf("ending the hold of %s: %w", key, err)
		}
	}
	return nil
}

// leavesStaleHold reports whether a rejected rollback still holds a pipeline: the process that rejected it has died, or
// another was about to hold it.
func (p *Promoter) leavesStaleHold(r status.Rollback) bool {
	return r.State == status.RollbackRefused && slices.ContainsFunc(r.Pipelines, func(key string) bool {
		hold := p.Store.Control(key).OnHold
		return hold != nil && hold.Rollback == r.ID
	})
}

func equalRollback(a, b status.Rollback) bool {
	return a.State == b.State && a.Message == b.Message && a.Result == b.Result && a.Number == b.Number && a.Files == b.Files
}

// keepRollbacks is how long a rollback that has ended is shown.
const keepRollbacks = 30 * 24 * time.Hour
