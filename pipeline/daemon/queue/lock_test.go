// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// oddLocks answers the first requests as a cluster does that is slow, or of which one server lags.
type oddLocks struct {
	jetstream.KeyValue
	updates []func(context.Context, func() (uint64, error)) (uint64, error)
	looks   []jetstream.KeyValueEntry // nil for none
	silent  int                       // looks that are not answered
	asked   []askedAt
}

// askedAt is when a request came, and how long it was to be waited for.
type askedAt struct{ at, deadline time.Time }

func (o *oddLocks) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	deadline, _ := ctx.Deadline()
	o.asked = append(o.asked, askedAt{time.Now(), deadline})
	do := func() (uint64, error) { return o.KeyValue.Update(ctx, key, value, revision) }
	if len(o.updates) == 0 {
		return do()
	}
	next := o.updates[0]
	o.updates = o.updates[1:]
	return next(ctx, do)
}

func (o *oddLocks) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if o.silent > 0 {
		o.silent--
		return nil, context.DeadlineExceeded
	}
	if len(o.looks) == 0 {
		return o.KeyValue.Get(ctx, key)
	}
	next := o.looks[0]
	o.looks = o.looks[1:]
	if next == nil {
		return nil, jetstream.ErrKeyNotFound
	}
	return next, nil
}

// oddEntry is what was in a bucket.
type oddEntry struct {
	jetstream.KeyValueEntry
	value    string
	revision uint64
}

func (e oddEntry) Value() []byte    { return []byte(e.value) }
func (e oddEntry) Revision() uint64 { return e.revision }

// lostRequest is one that is not done, lostAnswer is of one that was done.
func lostRequest(context.Context, func() (uint64, error)) (uint64, error) {
	return 0, context.DeadlineExceeded
}

func lostAnswer(_ context.Context, do func() (uint64, error)) (uint64, error) {
	_, err := do()
	return 0, errors.Join(context.DeadlineExceeded, err)
}

// oddClaim has a lock, and requests that follow go to the odd locks.
func oddClaim(t *testing.T) (*lockClaim, *oddLocks) {
	q, err := Open(t.Context(), Options{Dir: statetest.Dir(t), AckWait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	if _, err := q.locks.Put(t.Context(), subjectToken("other"), nil); err != nil { // the revision is not the first
		t.Fatal(err)
	}
	locks := &oddLocks{KeyValue: q.locks}
	q.locks = locks
	c := &lockClaim{q: q.Locks, key: subjectToken("x"), value: []byte("mine")}
	if ok, err := c.takeLock(t.Context()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	return c, locks
}

// TestALockOutlivesARenewalThatIsNotAnswered: no request is waited for longer than for half of the time that is left.
func TestALockOutlivesARenewalThatIsNotAnswered(t *testing.T) {
	c, locks := oddClaim(t)
	const every = 40 * time.Millisecond
	locks.updates = append(locks.updates, lostRequest, lostRequest)
	h := &heldLock{began: time.Now().Add(-52 * time.Second), valid: 54 * time.Second} // almost over
	runsOut := h.began.Add(h.valid)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { h.keepRenewing(ctx, c, every); close(ended) }()
	for deadline := time.Now().Add(3 * time.Minute); h.renewed.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not renewed")
		}
	}
	stop()
	<-ended
	if len(locks.asked) < 3 || h.dropped.Load() {
		t.Fatalf("%d requests, and it counts as lost: %t", len(locks.asked), h.dropped.Load())
	}
	for i, one := range locks.asked[:3] {
		if most := max(runsOut.Sub(one.at)/2, every/4); one.deadline.IsZero() || one.deadline.Sub(one.at) > most {
			t.Errorf("request %d is waited for %s, where %s are left", i, one.deadline.Sub(one.at), runsOut.Sub(one.at))
		}
	}
}

// TestARenewalWhoseAnswerIsLateCounts from when it was asked for, once it is seen that it was done.
func TestARenewalWhoseAnswerIsLateCounts(t *testing.T) {
	c, locks := oddClaim(t)
	locks.updates, locks.silent = append(locks.updates, lostRequest, lostAnswer), 2
	first := time.Now()
	for n := range 2 {
		if renewed, lost := c.renewLock(t.Context(), first.Add(time.Duration(n)), time.Minute); !renewed.IsZero() || lost {
			t.Fatalf("nothing is known of it: %v, %t", renewed, lost)
		}
	}
	if renewed, lost := c.renewLock(t.Context(), first.Add(2), time.Minute); !renewed.Equal(first) || lost {
		t.Errorf("renewed from %v on, lost %t; the first was asked for at %v", renewed, lost, first)
	}
	// A server that lags tells of what was before that.
	locks.updates = append(locks.updates, lostRequest)
	locks.looks = append(locks.looks, oddEntry{value: "mine", revision: c.revision - 1})
	if renewed, lost := c.renewLock(t.Context(), first.Add(3), time.Minute); !renewed.IsZero() || lost {
		t.Errorf("renewed from %v on, lost %t", renewed, lost)
	}
	if renewed, lost := c.renewLock(t.Context(), first.Add(4), time.Minute); !renewed.Equal(first.Add(4)) || lost {
		t.Errorf("renewed from %v on, lost %t", renewed, lost)
	}
}

// TestALockIsNotLostByAnOldAnswer, of a server that lags, and is lost by a new one.
func TestALockIsNotLostByAnOldAnswer(t *testing.T) {
	former := oddEntry{value: "former", revision: 1}
	for name, test := range map[string]struct {
		looks []jetstream.KeyValueEntry
		lost  bool
	}{
		"of the former holder": {[]jetstream.KeyValueEntry{former}, false},
		"that knew of none":    {[]jetstream.KeyValueEntry{nil}, false},
		"of each in turn":      {[]jetstream.KeyValueEntry{nil, oddEntry{value: "mine", revision: 2}, nil}, false},
		"none, again":          {[]jetstream.KeyValueEntry{nil, nil}, true},
		"of the next holder":   {[]jetstream.KeyValueEntry{oddEntry{value: "next", revision: 1000}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, locks := oddClaim(t)
			locks.looks = test.looks
			for len(locks.looks) > 0 {
				locks.updates = append(locks.updates, lostRequest)
				_, lost := c.renewLock(t.Context(), time.Now(), time.Minute)
				if want := test.lost && len(locks.looks) == 0; lost != want {
					t.Fatalf("lost %t, want %t", lost, want)
				}
			}
			if test.lost {
				return
			}
			if renewed, lost := c.renewLock(t.Context(), time.Now(), time.Minute); renewed.IsZero() || lost {
				t.Errorf("it cannot be renewed any more: lost %t", lost)
			}
		})
	}
}

// TestALockThatRanOutIsNotAskedForInVain, where all that is found is older than it.
func TestALockThatRanOutIsNotAskedForInVain(t *testing.T) {
	c, locks := oddClaim(t)
	for range 1000 {
		locks.updates = append(locks.updates, lostRequest)
		locks.looks = append(locks.looks, oddEntry{value: "former", revision: 1})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	h := &heldLock{began: time.Now().Add(-time.Hour), valid: time.Minute}
	h.keepRenewing(ctx, c, time.Millisecond)
	if ctx.Err() != nil || h.isHeld() || len(locks.asked) != 1 {
		t.Errorf("%d requests, held %t", len(locks.asked), h.isHeld())
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
	c := lockClaim{q: q.Locks, key: subjectToken("x"), value: []byte("mine")}
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
