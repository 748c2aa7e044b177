// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// TestLocksOfAnEmbeddedServer are one holder's at a time, cost no write, and are nobody's after the queue is closed.
func TestLocksOfAnEmbeddedServer(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	before, err := q.js.Stream(t.Context(), "KV_PRERIG_LOCKS")
	if err != nil {
		t.Fatal(err)
	}
	var holders, most atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				unlock, err := q.Lock(t.Context(), "x")
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), holders.Add(1)))
				holders.Add(-1)
				unlock()
				unlock() // what is somebody else's by now is left alone
			}
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d held the lock at once", most.Load())
	}
	if now, err := before.Info(t.Context()); err != nil || now.State.LastSeq != before.CachedInfo().State.LastSeq {
		t.Errorf("something was stored: %v, %v", now, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok, err := q.TryLock(ended, "y"); ok || err == nil {
		t.Errorf("a lock for one who is gone: %t, %v", ok, err)
	}
	held, unlock, ok, err := q.TryLead(t.Context(), "y")
	if !ok || err != nil || !held() {
		t.Fatal(ok, err)
	}
	if _, ok, err := q.TryLock(t.Context(), "y"); ok || err != nil {
		t.Errorf("a lock that is held: %t, %v", ok, err)
	}
	q.Close()
	if held() {
		t.Error("the next queue may have the lock, and the holder does not know")
	}
	unlock()
	for _, name := range []string{"y", "z"} {
		if unlock, ok, err := q.TryLock(t.Context(), name); unlock != nil || ok || !errors.Is(err, errClosed) {
			t.Errorf("a lock of a closed queue: %t, %v", ok, err)
		}
		if held, unlock, ok, err := q.TryLead(t.Context(), name); held != nil || unlock != nil || ok || !errors.Is(err, errClosed) {
			t.Errorf("a lead of a closed queue: %t, %v", ok, err)
		}
		if unlock, err := q.Lock(t.Context(), name); unlock != nil || !errors.Is(err, errClosed) {
			t.Errorf("a lock of a closed queue, waited for: %v", err)
		}
	}
}

// TestAJobThatRunsIsAWorker, also where its lock is not stored.
func TestAJobThatRunsIsAWorker(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	if found, err := q.HasWorkers(t.Context()); err != nil || found {
		t.Fatal(found, err)
	}
	if err := q.Request(t.Context(), Job{Pipeline: "a"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_ = q.Work(ctx, 1, func(context.Context, Job) error {
		defer cancel()
		if found, err := q.HasWorkers(t.Context()); err != nil || !found {
			t.Errorf("workers %t, %v", found, err)
		}
		return nil
	})
}
