// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/publish"
)

// rollbacks finds what is taken back of pipelines, takes it back, and stores what became of it.
type rollbacks struct {
	catalog *catalog.Catalog
	store   *status.Store
	queue   *queue.Queue
	targets *publish.Targets
	// consider has pipelines look at what became of their branches; it may be nil.
	consider func(ctx context.Context, pipelines []string, reason string) error
	now      func() time.Time
	log      *slog.Logger
}

func (p *Promoter) rollbacks() rollbacks {
	return rollbacks{p.Catalog, p.Store, p.Queue, p.Targets, p.Consider, p.now, p.Log}
}

// cancel ends rollbacks of pipelines that were not done yet.
func (b rollbacks) cancel(ctx context.Context, pipelines []string) error {
	for _, r := range b.store.Rollbacks() {
		if r.State != status.RollbackAsked || !slices.ContainsFunc(r.Pipelines, func(one string) bool { return slices.Contains(pipelines, one) }) {
			continue
		}
		err := b.store.ChangeRollback(ctx, r.ID, func(r *status.Rollback) bool {
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

// entryOf returns the pipeline of a rollback and the entry that it is about, or nil if the pipeline no longer has it.
func (b rollbacks) entryOf(r status.Rollback) (catalog.Entry, *v1alpha1.Publish) {
	e, ok := b.catalog.Get(r.Pipeline)
	if !ok || e.Err != nil {
		return e, nil
	}
	at := slices.IndexFunc(e.Pipeline.Spec.Publish, func(to v1alpha1.Publish) bool { return to.Target() == r.Target })
	if at < 0 {
		return e, nil
	}
	return e, &e.Pipeline.Spec.Publish[at]
}

// findAll finds what is taken back of pipelines, and asks may for all that this changes.
func (b rollbacks) findAll(ctx context.Context, pipelines []string, commit, by string, may func(pipeline string) error) (asked []status.Rollback, err error) {
	for _, key := range pipelines {
		e, ok := b.catalog.Get(key)
		if !ok || e.Err != nil {
			return nil, fmt.Errorf("rolling back %s: there is no such pipeline", key)
		}
		found, err := b.findOf(ctx, e, commit, by)
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

// findOf finds what was last published of a pipeline, at all places that can be rolled back.
func (b rollbacks) findOf(ctx context.Context, e catalog.Entry, commit, by string) (out []status.Rollback, err error) {
	if hold := b.store.Control(e.Key).OnHold; hold != nil && hold.Rollback != "" && commit == "" {
		return nil, ErrRolledBack
	}
	var skip []string
	for _, r := range b.store.Rollbacks() {
		skip = append(skip, r.Result)
	}
	nothing := error(publish.ErrNoRollback)
	for _, to := range e.Pipeline.Spec.Publish {
		found, err := b.targets.FindPublication(ctx, e.Key, e.Pipeline.Metadata.Namespace, to, commit, skip)
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
			At: b.now().UTC(), By: by, State: status.RollbackAsked,
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

// begin stores a requested rollback and executes it. A rollback that was requested before and is not
// finished is continued. If it cannot be stored, the zero value is returned with the error.
func (b rollbacks) begin(ctx context.Context, r status.Rollback) (status.Rollback, error) {
	unlock, err := b.queue.Lock(ctx, rollbackLock(r.ID))
	if err != nil {
		return status.Rollback{}, err
	}
	defer unlock()
	err = b.store.ChangeRollback(ctx, r.ID, func(stored *status.Rollback) bool {
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
	return b.execute(ctx, r)
}

// finish does what is left to do of a rollback, unless another is at it.
func (b rollbacks) finish(ctx context.Context, id string) error {
	unlock, ok, err := b.queue.TryLock(ctx, rollbackLock(id))
	if err != nil || !ok {
		return err
	}
	defer unlock()
	r, err := b.store.LoadRollback(ctx, id) // what others have done of it since
	switch {
	case err != nil || r.ID == "":
	case r.State == status.RollbackRefused:
		err = b.liftHolds(ctx, r)
	case !r.Ended():
		_, err = b.execute(ctx, r)
	}
	return err
}

// execute does what is left to do of a rollback, and stores what became of it. An error is one that may pass. It is for who holds
// the lock.
func (b rollbacks) execute(ctx context.Context, r status.Rollback) (status.Rollback, error) {
	e, to := b.entryOf(r)
	if to == nil {
		return b.end(ctx, r, status.RollbackRefused, "the pipeline does not publish there any more")
	}
	if r.State == status.RollbackAsked {
		if err := b.holdPipelines(ctx, r); err != nil {
			return r, err
		}
		// A person may have promoted one of them just before.
		now, err := b.store.LoadRollback(ctx, r.ID)
		if err != nil {
			return r, err
		}
		if now.State == status.RollbackRefused {
			return b.end(ctx, r, status.RollbackRefused, now.Message)
		}
	}
	back, err := b.targets.TakeBack(ctx, e.Pipeline.Metadata.Namespace, *to, r.Commit, r.By)
	if errors.Is(err, publish.ErrChangedSince) {
		return b.end(ctx, r, status.RollbackRefused, err.Error())
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
		return b.end(ctx, r, status.RollbackDone, "")
	case back.Request == nil: // others have something at the branch that it would be proposed from
		return b.end(ctx, r, r.State, back.Edited+"; delete the branch, and the rollback is proposed")
	case back.Request.State == pullrequest.StateClosed:
		return b.end(ctx, r, status.RollbackClosed, fmt.Sprintf("a person has closed pull request %d", r.Number))
	}
	message := fmt.Sprintf("pull request %d takes it back and waits for a merge", r.Number)
	if back.Edited != "" {
		message += "; " + back.Edited
	}
	return b.end(ctx, r, status.RollbackOpen, message)
}

// holdPipelines puts the pipelines of a rollback on hold, including those that are currently deleted or
// invalid: they may come back.
func (b rollbacks) holdPipelines(ctx context.Context, r status.Rollback) error {
	hold := &status.OnHold{Since: r.At, By: r.By, Reason: fmt.Sprintf("%.12s was rolled back", r.Commit), Rollback: r.ID}
	for _, key := range r.Pipelines {
		err := b.store.SetControl(ctx, key, func(c *status.Control) {
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

// end stores the outcome of a rollback. A rejected rollback puts no pipeline on hold.
func (b rollbacks) end(ctx context.Context, r status.Rollback, state, message string) (status.Rollback, error) {
	if state == status.RollbackRefused {
		if err := b.liftHolds(ctx, r); err != nil {
			return r, err
		}
	}
	changed := r.State != state || r.Message != message
	r.State, r.Message = state, message
	if changed {
		b.log.Info("rollback", "commit", r.Commit, "target", r.Target, "state", state, "result", r.Result, "pull request", r.Number, "message", message)
	}
	err := b.store.ChangeRollback(ctx, r.ID, func(stored *status.Rollback) bool {
		if equalRollback(*stored, r) {
			return false
		}
		*stored = r
		return true
	})
	if err == nil && changed && state == status.RollbackDone && b.consider != nil {
		if failed := b.consider(ctx, r.Pipelines, "its last publish was rolled back"); failed != nil {
			b.log.Warn("what was rolled back is read at the next interval", "error", failed)
		}
	}
	return r, err
}

// liftHolds ends the hold of pipelines that a rollback was the cause of. This process may not know yet of one that was just stored.
func (b rollbacks) liftHolds(ctx context.Context, r status.Rollback) error {
	for _, key := range r.Pipelines {
		err := b.store.ChangeControl(ctx, key, func(c *status.Control) bool {
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
func (b rollbacks) leavesStaleHold(r status.Rollback) bool {
	return r.State == status.RollbackRefused && slices.ContainsFunc(r.Pipelines, func(key string) bool {
		hold := b.store.Control(key).OnHold
		return hold != nil && hold.Rollback == r.ID
	})
}

func equalRollback(a, b status.Rollback) bool {
	return a.State == b.State && a.Message == b.Message && a.Result == b.Result && a.Number == b.Number && a.Files == b.Files
}

// keepRollbacks is how long a rollback that has ended is shown.
const keepRollbacks = 30 * 24 * time.Hour
