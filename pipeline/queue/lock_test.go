// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// silentLocks answers no request for the first renewals.
type silentLocks struct {
	jetstream.KeyValue
	silent, asked atomic.Int32
}

func (s *silentLocks) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if s.asked.Add(1); s.silent.Add(-1) >= 0 {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return s.KeyValue.Update(ctx, key, value, revision)
}

// TestALockOutlivesARenewalThatIsNotAnswered: the next request comes before the lock has run out.
func TestALockOutlivesARenewalThatIsNotAnswered(t *testing.T) {
	q, err := Open(t.Context(), Options{Dir: statetest.Dir(t), AckWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	locks := &silentLocks{KeyValue: q.locks}
	locks.silent.Store(2)
	q.locks = locks
	h := &heldLock{began: time.Now().Add(-53 * time.Second), valid: 54 * time.Second} // almost over
	c := lockClaim{q: q, key: subjectToken("x"), value: []byte("mine")}
	if ok, err := c.takeLock(t.Context()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { h.keepRenewing(ctx, &c, 400*time.Millisecond); close(ended) }()
	for deadline := time.Now().Add(3 * time.Minute); h.renewed.Load() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it is not renewed after %d requests", locks.asked.Load())
		}
	}
	stop()
	<-ended
	if locks.asked.Load() < 3 || h.dropped.Load() {
		t.Errorf("%d requests, and it counts as lost: %t", locks.asked.Load(), h.dropped.Load())
	}
}

// TestALockThatAnotherHasIsKnownAsLost at the first renewal, and is not asked for again and again.
func TestALockThatAnotherHasIsKnownAsLost(t *testing.T) {
	q, err := Open(t.Context(), Options{Dir: statetest.Dir(t), AckWait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	h := &heldLock{began: time.Now(), valid: time.Hour}
	c := lockClaim{q: q, key: subjectToken("x"), value: []byte("mine")}
	if ok, err := c.takeLock(t.Context()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, err := q.locks.Put(t.Context(), c.key, []byte("another's")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	h.keepRenewing(ctx, &c, 10*time.Millisecond)
	if ctx.Err() != nil || h.isHeld() {
		t.Error("it counts as held")
	}
}
