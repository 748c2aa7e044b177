// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/publish"
)

// Keeper registers pipelines and approves removals. It is safe for concurrent use.
type Keeper struct {
	Catalog *catalog.Catalog
	Store   *status.Store
	Queue   *queue.Queue
	// Delay is how long a pipeline must be missing, MaxShare how many percent of all may go at once.
	Delay    time.Duration
	MaxShare int
	// Plan requests planning of pipelines for a reason: those that publish to places of a removed one, and those
	// that were doubted.
	Plan func(pipelines []string, reason string)
	Log  *slog.Logger

	mu      sync.Mutex
	checked []catalog.Status // of the last check
	named   uint64           // what is stored of pipelines, in the last check
	settled bool             // no pipeline was missing in it
	asked   map[string]time.Time
	told    string // the reason that was logged last

	doubts atomic.Pointer[[]doubt] // the reasons it is unknown which pipelines are missing
}

// States of a Removal.
const (
	Waiting  = "Waiting"  // for the delay
	Held     = "Held"     // until it is confirmed or the problem is fixed
	Removing = "Removing" // by a worker, or tried again after a failure
)

// Removal is a pipeline that is missing and not removed yet.
type Removal struct {
	Pipeline string                  `json:"pipeline"`
	State    string                  `json:"state"`
	Since    time.Time               `json:"since"`
	Policy   v1alpha1.DeletionPolicy `json:"policy"`
	// Targets are where it has published to.
	Targets []string `json:"targets,omitempty"`
	Message string   `json:"message,omitempty"`
}

// every is how often the keeper looks.
const every = time.Second

// Run checks until ctx is done.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := k.Check(ctx); err != nil && ctx.Err() == nil {
				k.Log.Warn("looking for deleted pipelines; the daemon retries", "error", err)
			}
		}
	}
}

// Check registers the existing pipelines, marks the missing ones, and approves removals that are due. Call it
// before planning the runs of a changed catalog, so that a renamed pipeline finds the old one marked.
func (k *Keeper) Check(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, named := k.Catalog.Statuses(), k.Store.Named()
	if k.settled && named == k.named && slices.Equal(now, k.checked) {
		return nil
	}
	k.settled = false
	present := map[string]bool{}
	entries := k.Catalog.All()
	for _, e := range entries {
		present[e.Key] = true
	}
	var gone []string
	known := k.Store.Registered()
	for _, name := range known {
		if !present[name] {
			gone = append(gone, name)
		}
	}
	if len(gone) == 0 && slices.Equal(now, k.checked) {
		k.named, k.settled = named, true
		return nil
	}
	unsure, err := k.registerPipelines(ctx, entries)
	if err != nil {
		return err
	}
	if err := k.recordMissingPipelines(ctx, gone); err != nil {
		return err
	}
	k.checked = now
	if unsure {
		k.checked = nil // to look again
	}
	doubts := k.findUncertainFiles(entries)
	k.doubts.Store(&doubts)
	return k.approveDue(ctx, gone, k.removalLimitReasons(gone, known))
}

// registerPipelines records the declarations of valid pipelines, and the return of missing ones. A pipeline that
// another process has seen changed or deleted is recorded only if the API server confirms this process's view of
// it; unsure reports whether it did not.
func (k *Keeper) registerPipelines(ctx context.Context, entries []catalog.Entry) (unsure bool, err error) {
	var confirmed []string
	for _, e := range entries {
		doubted := k.Store.IsDoubted(e.Key, e.Object)
		if doubted {
			if unsure = unsure || k.Catalog.Confirm(ctx, e) != nil; unsure {
				continue
			}
			confirmed = append(confirmed, e.Key)
		}
		if err := k.registerPipeline(ctx, e, doubted); err != nil {
			return unsure, err
		}
	}
	if len(confirmed) > 0 && k.Plan != nil {
		k.Plan(confirmed, "the pipeline is there after all")
	}
	return unsure, nil
}

// registerPipeline records the declarations of a pipeline, and that it exists.
func (k *Keeper) registerPipeline(ctx context.Context, e catalog.Entry, confirmed bool) error {
	registered, ok := k.Store.Registration(e.Key)
	want := registered
	if e.Pipeline != nil {
		want = status.Register(e.Pipeline)
		want.Left = publish.Stale(registered, want.Publish)
	}
	want.Removal, want.Object = nil, e.Object
	if !ok && e.Pipeline == nil || ok && registered.Digest() == want.Digest() {
		return nil
	}
	return k.Store.ChangeRegistration(ctx, e.Key, func(r *status.Registration) bool {
		now := *r
		if !now.TakeObject(e.Object, confirmed) {
			return false
		}
		if r.Removal != nil {
			k.Log.Info("a removed pipeline is back", "pipeline", e.Key)
		}
		if e.Pipeline == nil {
			want = now
		} else {
			want.Left = publish.Stale(*r, want.Publish)
		}
		want.Removal, want.Object = nil, now.Object
		changed := r.Digest() != want.Digest()
		*r = want
		return changed
	})
}

// recordMissingPipelines records since when pipelines are missing and the final declarations of their authors, and
// requests planning of their possible successors.
func (k *Keeper) recordMissingPipelines(ctx context.Context, gone []string) error {
	var heirs []string
	for _, name := range gone {
		word, deleted := k.Catalog.LastWordOf(name)
		if r, ok := k.Store.Registration(name); ok && r.Removal != nil && !isAhead(r.Removal) && !(deleted && takeLastWord(&r, word)) {
			continue
		}
		marked := false
		err := k.Store.ChangeRegistration(ctx, name, func(r *status.Registration) bool {
			if r.Policy == "" {
				r.Policy = v1alpha1.DeletionOrphan // it was never registered: only its state is known
			}
			if marked = r.Removal == nil; marked {
				r.Removal = &status.Removal{Since: time.Now().UTC(), Deleted: deleted}
				heirs = append(heirs, k.Catalog.Successors(name, slices.Concat(r.Publish, r.Left))...)
			}
			ahead := isAhead(r.Removal)
			if ahead {
				r.Removal.Since = time.Now().UTC()
			}
			return deleted && takeLastWord(r, word) || marked || ahead
		})
		if err != nil {
			return err
		}
		if marked {
			k.Log.Info("a pipeline was deleted", "pipeline", name, "acted upon after", k.delayOf(name))
		}
	}
	if len(heirs) > 0 && k.Plan != nil {
		slices.Sort(heirs)
		k.Plan(slices.Compact(heirs), "another pipeline was deleted")
	}
	return nil
}

// isAhead reports whether a removal was recorded before the clock was set back: its delay starts over now, rather
// than when the clock has caught up.
func isAhead(r *status.Removal) bool { return time.Until(r.Since) > time.Minute }

// takeLastWord updates a removal to the final declaration of the pipeline's author, which may be newer than its
// last run, unless the removal was approved. It reports whether this changed it.
func takeLastWord(r *status.Registration, word catalog.LastWord) (changed bool) {
	before := *r
	if r.Removal.Approved || len(r.Publish)+len(r.Left) == 0 {
		return false
	}
	r.Suspended = word.Suspended
	if word.Policy != "" {
		r.Policy = word.Policy
	}
	return r.Policy != before.Policy || r.Suspended != before.Suspended
}

// again is the delay between requesting a job and checking that it still exists.
const again = time.Minute

// requestRemovals approves removals and asks for the jobs.
func (k *Keeper) requestRemovals(ctx context.Context, due []string, change func(*status.Registration)) error {
	if k.asked == nil {
		k.asked = map[string]time.Time{}
	}
	due = slices.DeleteFunc(due, func(name string) bool { return change == nil && time.Since(k.asked[name]) < again })
	if len(due) == 0 {
		return nil
	}
	pending, err := k.Queue.Pending(ctx)
	if err != nil {
		return err
	}
	cause, now := rand.Text(), time.Now()
	for _, name := range due {
		approved := false
		err := k.Store.ChangeRegistration(ctx, name, func(r *status.Registration) bool {
			if r.Removal == nil {
				return false
			}
			if change != nil {
				change(r)
			}
			if approved = r.Removal.Approved; approved && change == nil {
				return false
			}
			r.Removal.Approved, r.Removal.Held, r.Removal.Message = true, false, ""
			return true
		})
		if err == nil && !(approved && pending[name] && change == nil) {
			err = k.Queue.Request(ctx, queue.Job{Pipeline: name, Cause: cause, Reason: "the pipeline was deleted", Since: now, NotBefore: now, Batch: len(due)})
		}
		if err != nil {
			return err
		}
		k.asked[name] = now
	}
	return nil
}

// ErrNotGone is the cause of an error about a pipeline that exists or is unknown.
var ErrNotGone = errors.New("it is not among the deleted pipelines that wait for their removal")

// Confirm releases pipelines whose removal is held. With orphan their files are left, regardless of the deletion
// policy.
func (k *Keeper) Confirm(ctx context.Context, names []string, orphan bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range names {
		_, present := k.Catalog.Get(name)
		if r, ok := k.Store.Registration(name); !ok || present || r.Removal == nil {
			return fmt.Errorf("removing pipeline %s: %w", name, ErrNotGone)
		}
	}
	return k.requestRemovals(ctx, names, func(r *status.Registration) {
		if orphan {
			r.Policy = v1alpha1.DeletionOrphan
		}
	})
}

// Removals lists the pipelines that are missing and not removed yet.
func (k *Keeper) Removals() []Removal {
	var out []Removal
	for _, name := range k.Store.Registered() {
		r, ok := k.Store.Registration(name)
		if _, present := k.Catalog.Get(name); !ok || r.Removal == nil || present {
			continue
		}
		one := Removal{Pipeline: name, State: Waiting, Since: r.Removal.Since, Policy: r.Policy, Message: r.Removal.Message}
		for _, to := range r.Publish {
			one.Targets = append(one.Targets, to.Target())
		}
		switch {
		case r.Removal.Approved:
			one.State = Removing
		case r.Removal.Held:
			one.State = Held
		case time.Since(r.Removal.Since) >= k.delayOf(name):
			if doubt := k.uncertainRemovalReason(name); doubt != "" {
				one.State, one.Message = Held, doubt
			}
		}
		out = append(out, one)
	}
	return out
}
