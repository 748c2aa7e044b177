// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/prerig/prerig/pipeline/internal/process/backoff"
)

// TryLock acquires the lock of a name for as long as this process lives and reports, at most until unlock is
// called. It returns false if another process holds it. A holder that dies loses the lock after Options.AckWait.
//
// A lock only keeps workers from duplicating work; operations that must never happen twice are guarded by
// compare-and-swap themselves, because a process that was stopped for longer than AckWait does not know that it
// lost its lock.
func (q *Locks) TryLock(ctx context.Context, name string) (unlock func(), ok bool, err error) {
	held, ok, err := q.tryLock(ctx, name)
	if !ok || err != nil {
		return nil, ok, err
	}
	return held.unlock, true, nil
}

// TryLead acquires the lock of a name as TryLock does, for a long-running holder: held reports whether no other
// process can have it.
func (q *Locks) TryLead(ctx context.Context, name string) (held func() bool, unlock func(), ok bool, err error) {
	h, ok, err := q.tryLock(ctx, name)
	if !ok || err != nil {
		return nil, nil, ok, err
	}
	return h.isHeld, h.unlock, true, nil
}

// heldLock is a lock that was taken.
type heldLock struct {
	renewed atomic.Int64 // nanoseconds since began
	dropped atomic.Bool
	began   time.Time
	valid   time.Duration
	local   *localLocks // where it is not stored, and held until it is dropped
	unlock  func()
}

// isHeld reports whether no other process can have the lock.
func (h *heldLock) isHeld() bool {
	if h.local != nil {
		return !h.dropped.Load() && !h.local.closed.Load()
	}
	return !h.dropped.Load() && time.Since(h.began)-time.Duration(h.renewed.Load()) < h.valid
}

type holdKey struct{}

// Held reports whether the job that ctx belongs to still has its pipeline for itself: a process that was stopped, or cut off,
// for longer than Options.AckWait has lost it to another.
func Held(ctx context.Context) error {
	if h, ok := ctx.Value(holdKey{}).(*heldLock); ok && !h.isHeld() {
		return errors.New("the pipeline's lock was lost: the run is over, or the queue could not be reached in time")
	}
	return ctx.Err()
}

func (q *Locks) tryLock(ctx context.Context, name string) (*heldLock, bool, error) {
	if q.local != nil {
		if err := ctx.Err(); err != nil {
			return nil, false, fmt.Errorf("locking %s: %w", name, err)
		}
		h, ok, err := q.local.tryAcquireLock(name)
		if err != nil {
			return nil, false, fmt.Errorf("locking %s: %w", name, err)
		}
		return h, ok, nil
	}
	h := &heldLock{began: time.Now(), valid: q.opts.AckWait * 9 / 10}
	// Each hold has a unique value, to determine the outcome of a request whose response was lost.
	c := lockClaim{q: q, key: subjectToken(name), value: []byte(q.owner + "/" + crand.Text())}
	ok, err := c.takeLock(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("locking %s: %w", name, err)
	}
	if !ok {
		return nil, false, nil
	}
	holding, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.keepRenewing(holding, &c, q.opts.AckWait/3)
	}()
	h.unlock = func() {
		h.dropped.Store(true)
		stop()
		<-done
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		c.dropLock(ctx)
	}
	return h, true, nil
}

// keepRenewing renews a lock until ctx is done, or the lock is another's. The times differ from lock to lock, so that a thousand locks that
// were taken at once are not renewed at once. They count from when the last renewal was asked for, as what it gave does.
func (h *heldLock) keepRenewing(ctx context.Context, c *lockClaim, every time.Duration) {
	pause := func() time.Duration { return every*3/4 + rand.N(every/4+1) }
	for wait := pause(); backoff.Wait(ctx, wait) == nil; {
		now := time.Now()
		renewed, lost := c.renewLock(ctx, now, h.renewalRequestTimeout(now, every))
		switch {
		case !renewed.IsZero():
			h.renewed.Store(int64(renewed.Sub(h.began)))
			wait = max(every/8, pause()-time.Since(renewed))
		case lost, c.doubts > 0 && !h.isHeld():
			h.dropped.Store(true)
			return
		default:
			wait = every / 8
		}
	}
}

// renewalRequestTimeout returns how long a request may take: one that is not answered leaves time for others before the
// lock runs out.
func (h *heldLock) renewalRequestTimeout(now time.Time, every time.Duration) time.Duration {
	left := h.valid - now.Sub(h.began) + time.Duration(h.renewed.Load())
	return min(max(left/2, every/4), requestTimeout)
}

// lockClaim is the entry of a hold in the bucket of locks. A cluster that changes its leader may execute a request
// without responding; the claim then checks the outcome, because otherwise the lock would be unusable until it
// expires.
type lockClaim struct {
	q        *Locks
	key      string
	value    []byte
	revision uint64
	asked    time.Time // when the first of the renewals was asked for that were not answered since the revision was seen; zero for none
	doubts   int       // how many looks in a row have found neither this claim nor one that is newer
}

// lockSight is what a look at a lock has found, maybe on a server that does not know the latest yet.
type lockSight struct {
	looked, mine bool
	revision     uint64 // 0 if none exists
}

// takeLock returns false where another has the lock.
func (c *lockClaim) takeLock(ctx context.Context) (bool, error) {
	asking, cancel := withRequestTimeout(ctx)
	defer cancel()
	revision, err := c.q.locks.Create(asking, c.key, c.value)
	if err == nil {
		c.revision = revision
		return true, nil
	}
	// The request may have been sent twice, and the second one found what the first has made.
	found := c.findEntry(ctx)
	if found.mine || errors.Is(err, jetstream.ErrKeyExists) {
		return found.mine, nil
	}
	if !found.looked {
		c.q.opts.Log.Warn("it is not known whether a lock was taken; if it was, it runs out by itself", "error", err)
	}
	return false, c.q.noteWriteError(err)
}

// renewLock spends at most within on each of its requests. It returns the time from which the lock is renewed, if
// it is, or lost if the lock is held by another or by none.
func (c *lockClaim) renewLock(ctx context.Context, now time.Time, within time.Duration) (renewed time.Time, lost bool) {
	asking, cancel := context.WithDeadline(ctx, now.Add(within))
	defer cancel()
	revision, err := c.q.locks.Update(asking, c.key, c.value, c.revision)
	if err == nil {
		c.revision, c.asked, c.doubts = revision, time.Time{}, 0
		return now, false
	}
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		now = time.Time{} // it was not done
	}
	if c.asked.IsZero() {
		c.asked = now
	}
	looking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	was := c.revision
	found := c.findEntry(looking)
	switch {
	case !found.looked:
		return time.Time{}, false
	case found.mine:
		c.doubts = 0
		if c.revision > was { // one of those that were not answered was done, after it was asked for
			renewed, c.asked = c.asked, time.Time{}
		}
		return renewed, false
	case found.revision > c.revision:
		return time.Time{}, true
	}
	c.doubts++
	return time.Time{}, found.revision == 0 && c.doubts > 1
}

func (c *lockClaim) dropLock(ctx context.Context) {
	if c.revision == 0 || c.q.locks.Delete(ctx, c.key, jetstream.LastRevision(c.revision)) == nil {
		return
	}
	if c.findEntry(ctx).mine {
		_ = c.q.locks.Delete(ctx, c.key, jetstream.LastRevision(c.revision))
	}
}

// findEntry looks whether the lock is this claim's, and at which revision. The claim knows the highest that was seen.
func (c *lockClaim) findEntry(ctx context.Context) lockSight {
	ctx, cancel := withRequestTimeout(ctx)
	defer cancel()
	entry, err := c.q.locks.Get(ctx, c.key)
	if err != nil {
		return lockSight{looked: errors.Is(err, jetstream.ErrKeyNotFound)}
	}
	found := lockSight{looked: true, mine: bytes.Equal(entry.Value(), c.value), revision: entry.Revision()}
	if found.mine {
		c.revision = max(c.revision, found.revision)
	}
	return found
}

// Lock waits for the lock.
func (q *Locks) Lock(ctx context.Context, name string) (unlock func(), err error) {
	for try := 1; ; try++ {
		unlock, ok, err := q.TryLock(ctx, name)
		if err != nil || ok {
			return unlock, err
		}
		if err := backoff.Wait(ctx, backoff.Delay(10*time.Millisecond, 500*time.Millisecond, try)); err != nil {
			return nil, fmt.Errorf("waiting for the lock of %s: %w", name, err)
		}
	}
}
