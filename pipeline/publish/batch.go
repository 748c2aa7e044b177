// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/fault"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/source/git"
)

// Times of a batch.
const (
	// batchIdle is how long a change waits for others of its cause when none of them is under way in this process: they
	// may be in another, or have failed.
	batchIdle = time.Second
	// batchStall is the default minimum time that a change waits for a job that does not finish. The wait is
	// longer, a quarter of the time that the batch has been under way, if that is more, as its renders may all be
	// large.
	batchStall = 3 * time.Second
	// batchLongest is how long it waits at all.
	batchLongest = 2 * time.Minute
	batchTick    = 25 * time.Millisecond
)

// causeBatches keeps track of jobs with the same cause, so that their results become one commit for each branch: an
// upgrade of a mesh over a thousand applications is one thing to review.
type causeBatches struct {
	stall time.Duration // 0 for batchStall

	mu   sync.Mutex
	open map[string]*causeBatch
}

type causeBatch struct {
	size    int             // of all jobs of the cause
	waiting map[string]bool // pipelines that were started in this process, and whether they are to be waited for still
	ready   int             // of them that are not: they are at the publisher, or at their end
	began   time.Time
	moved   time.Time
}

// recordJobStart records the start of a job. A job that is retried for the same cause is not waited for.
func (b *causeBatches) recordJobStart(cause, pipeline string, size int) {
	if size <= 1 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		b.open = map[string]*causeBatch{}
	}
	now := time.Now()
	for key, old := range b.open {
		if old.ready == len(old.waiting) && now.Sub(old.moved) > batchLongest {
			delete(b.open, key)
		}
	}
	one := b.open[cause]
	if one == nil {
		one = &causeBatch{size: size, began: now, waiting: map[string]bool{}}
		b.open[cause] = one
	}
	if _, again := one.waiting[pipeline]; again {
		return
	}
	one.waiting[pipeline] = true
	one.moved = now
}

// recordJobLeft records that a job need not be waited for any more: it has a result to publish, or has ended. Only the
// first call counts.
func (b *causeBatches) recordJobLeft(cause, pipeline string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one := b.open[cause]; one != nil && one.waiting[pipeline] {
		one.waiting[pipeline] = false
		one.ready++
		one.moved = time.Now()
	}
}

// isComplete reports whether no job is left to wait for.
func (b *causeBatches) isComplete(cause string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.open[cause]
	if one == nil {
		return true
	}
	if one.ready >= one.size {
		return true
	}
	still := now.Sub(one.moved)
	return one.ready == len(one.waiting) && still > batchIdle ||
		still > max(cmp.Or(b.stall, batchStall), one.moved.Sub(one.began)/4)
}

// batchedTarget is a place whose changes others of the same cause wait for until they are handed in.
type batchedTarget struct {
	Interface
	batches *causeBatches
}

// Publish implements Interface.
func (t batchedTarget) Publish(ctx context.Context, c Change) (Receipt, error) {
	t.batches.recordJobLeft(c.Cause, c.Pipeline)
	return t.Interface.Publish(ctx, c)
}

// Remove implements Interface.
func (t batchedTarget) Remove(ctx context.Context, c Change) (Receipt, error) {
	t.batches.recordJobLeft(c.Cause, c.Pipeline)
	return t.Interface.Remove(ctx, c)
}

// changeCommitter publishes several changes at once. Branch is one.
type changeCommitter interface {
	Publish(ctx context.Context, changes []Change) (Result, error)
}

// changeBatcher batches the changes for one branch: it accepts them one by one and passes them to a committer as
// one commit.
type changeBatcher struct {
	batches  causeBatches
	lock     func(ctx context.Context, name string) (unlock func(), err error)
	watchdog *watchdog.Watchdog
	slots    int // runs that may be under way in this process at a time; 0 for no bound
	keep     func(ctx context.Context, notes []*Note) error

	mu     sync.Mutex
	groups map[string]*changeGroup
	// alone are pipelines of commits that hung, and those whose results a server has refused. Each is published by
	// itself until it is known not to be the cause.
	alone map[string]bool
}

type changeGroup struct{ waiting []*waitingChange }

type waitingChange struct {
	change Change
	cause  string
	since  time.Time
	done   chan batchedResult
}

// batchedResult is what became of one change.
type batchedResult struct {
	result  Result
	outcome Outcome
	err     error
}

// submitChange hands a change in and waits for what becomes of it. Changes with the same key go to the same branch in
// the same way; lock is the name of the branch among all processes.
func (b *changeBatcher) submitChange(ctx context.Context, key, lock, cause string, to changeCommitter,
	change Change) batchedResult {
	w := &waitingChange{change: change, cause: cause, since: time.Now(), done: make(chan batchedResult, 1)}
	b.mu.Lock()
	g := b.groups[key]
	if g == nil {
		g = &changeGroup{}
		if b.groups == nil {
			b.groups = map[string]*changeGroup{}
		}
		b.groups[key] = g
		// The group outlives the one that began it: others may have joined.
		go b.publishGroup(context.WithoutCancel(ctx), key, lock, to, g)
	}
	g.waiting = append(g.waiting, w)
	b.mu.Unlock()
	select {
	case done := <-w.done:
		return done
	case <-ctx.Done():
		b.withdrawWaitingChange(g, w)
		return batchedResult{err: ctx.Err()}
	}
}

// withdrawWaitingChange removes a change that has no waiter any more, unless it is already being published: the next
// run of its pipeline hands in a newer one.
func (b *changeBatcher) withdrawWaitingChange(g *changeGroup, w *waitingChange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(other *waitingChange) bool { return other == w })
}

// publishGroup publishes until no change is waiting.
func (b *changeBatcher) publishGroup(ctx context.Context, key, lock string, to changeCommitter, g *changeGroup) {
	for {
		b.waitForCauses(g)
		b.publishRound(ctx, lock, to, g)
		b.mu.Lock()
		if len(g.waiting) == 0 {
			delete(b.groups, key)
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
	}
}

// waitForCauses waits for the other jobs of the causes of those who wait.
func (b *changeBatcher) waitForCauses(g *changeGroup) {
	for !b.mayPublish(g, time.Now()) {
		time.Sleep(batchTick)
	}
}

// mayPublish reports whether the changes of a group have no other job to wait for.
func (b *changeBatcher) mayPublish(g *changeGroup, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isFull() || slices.ContainsFunc(g.waiting, func(w *waitingChange) bool { return now.Sub(w.since) > batchLongest }) {
		return true
	}
	asked := map[string]bool{}
	for _, w := range g.waiting {
		if !asked[w.cause] && !b.batches.isComplete(w.cause, now) {
			return false
		}
		asked[w.cause] = true
	}
	return true
}

// isFull reports whether all runs that may be under way wait here: no other can begin before some of them have ended.
// The caller holds the lock.
func (b *changeBatcher) isFull() bool {
	waiting := 0
	for _, g := range b.groups {
		waiting += len(g.waiting)
	}
	return b.slots > 0 && waiting >= b.slots
}

// publishRound publishes all waiting changes once it holds the lock of the branch, in one commit if the server
// accepts that. If publishing hangs, the lock passes to the next: the abandoned run finds its context done before
// it writes, or, if it is already writing, that the branch has moved.
func (b *changeBatcher) publishRound(ctx context.Context, lock string, to changeCommitter, g *changeGroup) {
	locking, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	unlock, err := b.lock(locking, lock)
	taken := b.removeNextRound(g)
	if err != nil {
		reportToWaiters(taken, Result{}, err)
		return
	}
	defer unlock()
	if len(taken) == 0 {
		return // all were withdrawn
	}
	if err := b.storePublishingNotes(ctx, taken); err != nil {
		reportToWaiters(taken, Result{}, err)
		return
	}
	b.publishParts(ctx, lock, to, taken)
}

// publishPart publishes changes in one commit, and notes whether that hung.
func (b *changeBatcher) publishPart(ctx context.Context, lock string, to changeCommitter,
	part []*waitingChange) (Result, error) {
	changes, names := make([]Change, len(part)), pipelinesOf(part)
	for i, w := range part {
		changes[i] = w.change
	}
	step := watchdog.Step{Name: watchdog.StepPublish, Subject: lock + " " + strings.Join(names, " "),
		Limit: publishTimeout}
	result, err := watchdog.Run(ctx, b.watchdog, step, func(ctx context.Context) (Result, error) { return publishSafely(ctx, to, changes) })
	switch {
	case errors.Is(err, watchdog.ErrOverdue):
		b.recordAlonePublishing(names, true)
	case !errors.Is(err, git.ErrRefused): // a refusal is attributed only once it is known whether others were accepted
		b.recordAlonePublishing(names, false)
	}
	return result, err
}

func pipelinesOf(part []*waitingChange) []string {
	names := make([]string, len(part))
	for i, w := range part {
		names[i] = w.change.Pipeline
	}
	return names
}

// reportToWaiters reports the outcome of a commit to all changes that wait for it.
func reportToWaiters(part []*waitingChange, result Result, err error) {
	for i, w := range part {
		done := batchedResult{result: result, err: err}
		if i < len(result.Outcomes) {
			done.outcome = result.Outcomes[i]
		}
		w.done <- done
	}
}

// removeNextRound removes from a group the changes of its next commit: all of them, except that a pipeline whose last
// commit hung or was refused is published alone.
func (b *changeBatcher) removeNextRound(g *changeGroup) []*waitingChange {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken, left := g.waiting, []*waitingChange(nil)
	if len(taken) > 0 && b.alone[taken[0].change.Pipeline] {
		taken, left = taken[:1:1], taken[1:]
	} else if len(b.alone) > 0 {
		taken = nil
		for _, w := range g.waiting {
			if b.alone[w.change.Pipeline] {
				left = append(left, w)
			} else {
				taken = append(taken, w)
			}
		}
	}
	g.waiting = left
	return taken
}

// recordAlonePublishing notes whether pipelines are to be published each by itself.
func (b *changeBatcher) recordAlonePublishing(pipelines []string, alone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, pipeline := range pipelines {
		if !alone {
			delete(b.alone, pipeline)
			continue
		}
		if b.alone == nil {
			b.alone = map[string]bool{}
		}
		b.alone[pipeline] = true
	}
}

// publishSafely turns a panic into an error of the changes that it is about.
func publishSafely(ctx context.Context, to changeCommitter, changes []Change) (result Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			result, err = Result{}, fault.Recovered(r)
		}
	}()
	return to.Publish(ctx, changes)
}
