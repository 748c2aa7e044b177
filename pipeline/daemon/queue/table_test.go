// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// TestATableOutlivesItsWatcher: the client gives a watcher up where a cluster answers with certain errors while it makes the
// watcher's consumer anew. Nothing that was saved since may be missing, and nobody may wait for ever.
func TestATableOutlivesItsWatcher(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := q.Save(ctx, "before", []byte("0")); err != nil {
		t.Fatal(err)
	}
	watcher, err := q.state.WatchAll(ctx)
	if err != nil {
		t.Fatal(err)
	}
	table := newTable(q.State)
	go table.followWatcher(ctx, watcher)
	if err := table.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		if err := watcher.Stop(); err != nil && round == 0 {
			t.Fatal(err)
		}
		name := fmt.Sprint("after ", round)
		// More than the watcher buffers.
		for i := range 300 {
			if err := q.Save(ctx, name, []byte(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Forget(ctx, "before"); err != nil {
			t.Fatal(err)
		}
		if err := table.Sync(ctx); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if data, _, ok := table.Get(name); !ok || string(data) != "299" {
			t.Errorf("round %d: got %q, %v", round, data, ok)
		}
		if _, _, ok := table.Get("before"); ok {
			t.Errorf("round %d: what was forgotten is there", round)
		}
		select { // the next watcher goes too, in another way
		case table.renew <- struct{}{}:
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
}

// TestATableDoesNotWaitForAServerThatIsGone: the consumer behind a watcher is gone without a word, as with its node.
func TestATableDoesNotWaitForAServerThatIsGone(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	table, err := q.Table(ctx)
	if err != nil {
		t.Fatal(err)
	}
	gone := 0
	for consumer := range q.stateStream.ListConsumers(ctx).Info() {
		if err := q.stateStream.DeleteConsumer(ctx, consumer.Name); err != nil {
			t.Fatal(err)
		}
		gone++
	}
	if gone == 0 {
		t.Fatal("the watcher has no consumer")
	}
	if err := q.Save(ctx, "a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := table.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	if data, _, ok := table.Get("a"); !ok || string(data) != "1" {
		t.Errorf("got %q, %v", data, ok)
	}
	t.Logf("it took %s", time.Since(begin))
}

// TestALockWhoseAnswerWasLost has requests that were done and seemed to fail, as when a cluster changes its leader.
func TestALockWhoseAnswerWasLost(t *testing.T) {
	q, err := Open(t.Context(), Options{Dir: statetest.Dir(t), AckWait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	ctx := t.Context()
	for name, test := range map[string]func(c *lockClaim) error{
		"take": func(c *lockClaim) error {
			// The first request was done, its answer lost, and it was sent again.
			if _, err := q.locks.Create(ctx, c.key, c.value); err != nil {
				return err
			}
			if ok, err := c.takeLock(ctx); err != nil || !ok {
				return fmt.Errorf("taking again: %v, %w", ok, err)
			}
			return nil
		},
		"renew": func(c *lockClaim) error {
			if ok, err := c.takeLock(ctx); err != nil || !ok {
				return fmt.Errorf("taking: %v, %w", ok, err)
			}
			if _, err := q.locks.Update(ctx, c.key, c.value, c.revision); err != nil {
				return err
			}
			if renewed, lost := c.renewLock(ctx, time.Now(), time.Minute); !renewed.IsZero() || lost {
				return errors.New("a renewal counts that may have come too late")
			}
			if renewed, _ := c.renewLock(ctx, time.Now(), time.Minute); renewed.IsZero() {
				return errors.New("a lock that is held cannot be renewed any more")
			}
			return nil
		},
		"drop": func(c *lockClaim) error {
			if ok, err := c.takeLock(ctx); err != nil || !ok {
				return fmt.Errorf("taking: %v, %w", ok, err)
			}
			_, err := q.locks.Update(ctx, c.key, c.value, c.revision)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &lockClaim{q: q.Locks, key: subjectToken(name), value: []byte("mine")}
			if err := test(c); err != nil {
				t.Fatal(err)
			}
			other := &lockClaim{q: q.Locks, key: c.key, value: []byte("another's")}
			if ok, err := other.takeLock(ctx); ok || err != nil {
				t.Fatalf("a held lock was taken: %v, %v", ok, err)
			}
			other.dropLock(ctx)
			if !c.findEntry(ctx).mine {
				t.Error("another has let go of the lock")
			}
			c.dropLock(ctx)
			if ok, err := other.takeLock(ctx); !ok || err != nil {
				t.Errorf("a lock that was let go is not free: %v, %v", ok, err)
			}
		})
	}
}

// TestATableTellsWhatHasChangedSince goes on for longer than changes are kept: what it tells is all, or it says that it cannot tell.
func TestATableTellsWhatHasChangedSince(t *testing.T) {
	table := newTable(nil)
	for last := range uint64(5*keptChanges + 7) {
		table.recordTableChange(tableChange{fmt.Sprint(last), last})
		table.seen = last
		if last%501 != 0 {
			continue
		}
		for _, since := range []uint64{last, last - min(last, 1), last - min(last, 700), last - min(last, keptChanges), last - min(last, keptChanges+1), 0} {
			names, seen, ok := table.ChangedSince(since)
			if !ok && last-since <= keptChanges {
				t.Fatalf("after %d changes it cannot tell what has changed since %d", last, since)
			}
			if !ok {
				continue
			}
			if seen != last || uint64(len(names)) != last-since {
				t.Fatalf("after %d changes %d have changed since %d, up to %d", last, len(names), since, seen)
			}
			for i, name := range names {
				if want := fmt.Sprint(since + 1 + uint64(i)); name != want {
					t.Fatalf("after %d changes %s has changed since %d where it was %s", last, name, since, want)
				}
			}
		}
	}
}
