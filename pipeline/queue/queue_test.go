// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/event"
)

func opened(t *testing.T, dir string) *Queue {
	t.Helper()
	q, err := Open(t.Context(), Options{Dir: dir, AckWait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestPutRemembersDeliveries(t *testing.T) {
	dir := t.TempDir()
	q := opened(t, dir)
	e := event.Event{ID: "a", Receiver: "github"}
	for i, want := range []bool{false, true} {
		got, err := q.Put(t.Context(), e)
		if err != nil || got != want {
			t.Fatalf("delivery %d: duplicate %v, error %v; want %v", i, got, err, want)
		}
	}
	q.Close()
	q = opened(t, dir)
	defer q.Close()
	if got, err := q.Put(t.Context(), e); err != nil || !got {
		t.Fatalf("after a restart: duplicate %v, error %v; want true", got, err)
	}
}

func TestWorkIsTheNewestJobOfEachPipelineAndNeverTwoAtOnce(t *testing.T) {
	q := opened(t, t.TempDir())
	defer q.Close()
	for i := range 30 {
		if err := q.Request(t.Context(), Job{Pipeline: string('a' + rune(i%3)), Cause: string('0' + rune(i/3))}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var mu sync.Mutex
	done, running := map[string]string{}, map[string]*atomic.Int32{"a": {}, "b": {}, "c": {}}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			_ = q.Work(ctx, func(_ context.Context, j Job) error {
				if running[j.Pipeline].Add(1) > 1 {
					t.Errorf("two jobs of %s at once", j.Pipeline)
				}
				defer running[j.Pipeline].Add(-1)
				if j.Cause == "9" {
					// A newer job that comes while one is running waits for it, and is not lost.
					if err := q.Request(ctx, Job{Pipeline: j.Pipeline, Cause: "newer"}); err != nil {
						return err
					}
				}
				time.Sleep(50 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				done[j.Pipeline] += j.Cause + " "
				if done["a"] == "9 newer " && done["b"] == "9 newer " && done["c"] == "9 newer " {
					cancel()
				}
				return nil
			})
		})
	}
	group.Wait()
	for _, p := range []string{"a", "b", "c"} {
		if done[p] != "9 newer " {
			t.Errorf("jobs done of %s: %q, want %q", p, done[p], "9 newer ")
		}
	}
}

func TestJobComesAgainAfterAnError(t *testing.T) {
	q := opened(t, t.TempDir())
	defer q.Close()
	if err := q.Request(t.Context(), Job{Pipeline: "a"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tries := 0
	_ = q.Work(ctx, func(context.Context, Job) error {
		if tries++; tries < 3 {
			return &RetryError{After: 10 * time.Millisecond, Err: context.Canceled}
		}
		cancel()
		return nil
	})
	if tries != 3 {
		t.Errorf("%d tries, want 3", tries)
	}
}

func TestLockOfADeadHolderIsLost(t *testing.T) {
	q := opened(t, t.TempDir())
	defer q.Close()
	if _, err := q.locks.Create(t.Context(), token("x"), []byte("dead")); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := q.TryLock(t.Context(), "x"); ok || err != nil {
		t.Fatalf("took a held lock: %v, %v", ok, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	unlock, err := q.Lock(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	unlock, ok, err := q.TryLock(t.Context(), "x")
	if !ok || err != nil {
		t.Fatalf("an unlocked lock was not free: %v, %v", ok, err)
	}
	unlock()
}
