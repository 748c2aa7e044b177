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
	// Plan has pipelines looked at for a reason: others that publish to where one that is gone has published, and those that were doubted.
	Plan func(pipelines []string, reason string)
	Log  *slog.Logger

	mu      sync.Mutex
	checked []catalog.Status // of the last check
	named   uint64           // what is stored of pipelines, in the last check
	settled bool             // nothing was gone in it
	asked   map[string]time.Time
	told    string // the reason that was logged last

	doubts atomic.Pointer[[]doubt] // why it is not known what is gone
}

// States of a Removal.
const (
	Waiting  = "Waiting"  // for the delay
	Held     = "Held"     // for somebody to confirm it or to mend something
	Removing = "Removing" // by a worker, or tried again after a failure
)

// Removal is a pipeline that is gone and not removed yet.
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
				k.Log.Warn("looking for pipelines that are gone; it is tried again", "error", err)
			}
		}
	}
}

// Check registers the pipelines that there are, marks those that are gone, and approves what is due. It is to be called
// before the runs of a changed catalog are planned, so that a pipeline with a new name finds the old one marked.
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
	if err := k.markGone(ctx, gone); err != nil {
		return err
	}
	if k.checked = now; unsure {
		k.checked = nil // to look again
	}
	doubts := k.findDoubts(entries)
	k.doubts.Store(&doubts)
	return k.approveDue(ctx, gone, k.tooMany(gone, known))
}

// registerPipelines notes what valid pipelines say, and that those are there which were missed. What another process has seen changed or
// deleted is noted only where the API server says that it is as this process knows it; unsure says that it did not.
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

// registerPipeline notes what a pipeline says, and that it is there.
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

// markGone notes since when pipelines are gone and what their authors have said in the end, and has those looked at that may go on in
// their place.
func (k *Keeper) markGone(ctx context.Context, gone []string) error {
	var heirs []string
	for _, name := range gone {
		word, deleted := k.Catalog.LastWordOf(name)
		if r, ok := k.Store.Registration(name); ok && r.Removal != nil && !isAhead(r.Removal) && !(deleted && takeLastWord(&r, word)) {
			continue
		}
		marked := false
		err := k.Store.ChangeRegistration(ctx, name, func(r *status.Registration) bool {
			if r.Policy == "" {
				r.Policy = v1alpha1.DeletionOrphan // it was never registered: nothing is known of it but a state
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
			k.Log.Info("a pipeline is gone", "pipeline", name, "acted upon after", k.delayOf(name))
		}
	}
	if len(heirs) > 0 && k.Plan != nil {
		slices.Sort(heirs)
		k.Plan(slices.Compact(heirs), "another pipeline is gone")
	}
	return nil
}

// isAhead reports whether a removal was noted before the clock was set back: its delay begins anew, and not when the
// clock is there again.
func isAhead(r *status.Removal) bool { return time.Until(r.Since) > time.Minute }

// takeLastWord has a removal do what the author of the pipeline has said last, which may be after it ran last, as long as it was not
// approved. It reports whether that is something else.
func takeLastWord(r *status.Registration, word catalog.LastWord) (changed bool) {
	before := *r
	if r.Removal.Approved || len(r.Publish)+len(r.Left) == 0 {
		return false
	}
	if r.Suspended = word.Suspended; word.Policy != "" {
		r.Policy = word.Policy
	}
	return r.Policy != before.Policy || r.Suspended != before.Suspended
}

// again is how long after a job was asked for it is looked whether it is still there.
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
			err = k.Queue.Request(ctx, queue.Job{Pipeline: name, Cause: cause, Reason: "the pipeline is gone", Since: now, NotBefore: now, Batch: len(due)})
		}
		if err != nil {
			return err
		}
		k.asked[name] = now
	}
	return nil
}

// ErrNotGone is the cause of an error about a pipeline that is there, or that nothing is known of.
var ErrNotGone = errors.New("it is not among the pipelines that are gone and wait to be removed")

// Confirm lets pipelines go that are held back. With orphan their files are left, whatever the deletion policy says.
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

// Removals lists the pipelines that are gone and not removed yet.
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
			if doubt := k.doubtReason(name); doubt != "" {
				one.State, one.Message = Held, doubt
			}
		}
		out = append(out, one)
	}
	return out
}
