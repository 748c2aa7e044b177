// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TryLock takes the lock of a name for as long as this process lives and reports, at most until unlock is called. It gives
// false where another holds it. A holder that dies loses the lock after Options.AckWait.
//
// A lock keeps workers out of each other's way; what must never happen twice is guarded by comparing and swapping where it
// happens, as a process that was stopped for longer than AckWait does not know that it lost its lock.
func (q *Queue) TryLock(ctx context.Context, name string) (unlock func(), ok bool, err error) {
	held, ok, err := q.tryLock(ctx, name)
	if !ok || err != nil {
		return nil, ok, err
	}
	return held.unlock, true, nil
}

// hold is a lock that was taken.
type hold struct {
	renewed atomic.Int64 // nanoseconds since began
	began   time.Time
	valid   time.Duration
	unlock  func()
}

// ok says whether nobody else can have the lock.
func (h *hold) ok() bool { return time.Since(h.began)-time.Duration(h.renewed.Load()) < h.valid }

type holdKey struct{}

// Held says whether the job that ctx belongs to still has its pipeline for itself: a process that was stopped, or cut off,
// for longer than Options.AckWait has lost it to another.
func Held(ctx context.Context) error {
	if h, ok := ctx.Value(holdKey{}).(*hold); ok && !h.ok() {
		return errors.New("the lock of the pipeline was lost, as the queue was not reached in time")
	}
	return ctx.Err()
}

func (q *Queue) tryLock(ctx context.Context, name string) (*hold, bool, error) {
	key := token(name)
	h := &hold{began: time.Now(), valid: q.opts.AckWait * 9 / 10}
	revision, err := q.locks.Create(ctx, key, []byte(q.owner))
	if errors.Is(err, jetstream.ErrKeyExists) {
		return nil, false, nil
	}
	if q.noted(err) != nil {
		return nil, false, fmt.Errorf("locking %s: %w", name, err)
	}
	holding, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(q.opts.AckWait / 3)
		defer tick.Stop()
		for {
			select {
			case <-holding.Done():
				return
			case <-tick.C:
				at := time.Since(h.began)
				if r, err := q.locks.Update(holding, key, []byte(q.owner), revision); err == nil {
					revision = r
					h.renewed.Store(int64(at))
				}
			}
		}
	}()
	h.unlock = func() {
		stop()
		<-done
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = q.locks.Delete(ctx, key, jetstream.LastRevision(revision))
	}
	return h, true, nil
}

// Lock waits for the lock.
func (q *Queue) Lock(ctx context.Context, name string) (unlock func(), err error) {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		unlock, ok, err := q.TryLock(ctx, name)
		if err != nil || ok {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lock of %s: %w", name, ctx.Err())
		case <-time.After(wait):
		}
	}
}
