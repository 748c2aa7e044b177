// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TryLock takes the lock of a name for as long as this process lives and reports, at most until unlock is called. It gives
// false where another holds it. A holder that dies loses the lock after Options.AckWait.
//
// A lock keeps workers out of each other's way; what must never happen twice is guarded by comparing and swapping where it
// happens, as a process that was stopped for longer than AckWait does not know that it lost its lock.
func (q *Queue) TryLock(ctx context.Context, name string) (unlock func(), ok bool, err error) {
	key := token(name)
	revision, err := q.locks.Create(ctx, key, []byte(q.owner))
	if errors.Is(err, jetstream.ErrKeyExists) {
		return nil, false, nil
	}
	if err != nil {
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
				if r, err := q.locks.Update(holding, key, []byte(q.owner), revision); err == nil {
					revision = r
				}
			}
		}
	}()
	return func() {
		stop()
		<-done
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = q.locks.Delete(ctx, key, jetstream.LastRevision(revision))
	}, true, nil
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
