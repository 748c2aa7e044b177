// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestOneSlowLookIsForAllWhoWait has a hundred ask while a look is under way that takes longer than looks are good for.
func TestOneSlowLookIsForAllWhoWait(t *testing.T) {
	for name, failure := range map[string]error{"answered": nil, "not answered": errors.New("no answer")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l looks
				var count atomic.Int32
				do := func(context.Context) (*Waiting, error) {
					count.Add(1)
					time.Sleep(time.Minute)
					return &Waiting{}, failure
				}
				since := time.Now().Add(-time.Minute)
				var all sync.WaitGroup
				ask := func() {
					if _, err := l.shareRecentLook(t.Context(), "a", since, do); !errors.Is(err, failure) {
						t.Errorf("got %v, want %v", err, failure)
					}
				}
				all.Go(ask)
				time.Sleep(time.Second) // by the clock of this test
				for range 100 {
					all.Go(ask)
				}
				all.Wait()
				if n := count.Load(); n != 1 {
					t.Errorf("%d looks", n)
				}
				if _, err := l.shareRecentLook(t.Context(), "a", time.Now(), do); !errors.Is(err, failure) {
					t.Error(err)
				}
				if n := count.Load(); n != 2 {
					t.Errorf("%d looks after something that happened since", n)
				}
			})
		})
	}
}

// TestALookIsForgottenAfterAnHour, and not before it has begun, or somebody who waits for it would not see what others see.
func TestALookIsForgottenAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l looks
		first := l.lastLookAt("a")
		l.lastLookAt("b")
		if l.lastLookAt("a") != first {
			t.Error("it is forgotten before it has begun")
		}
		first.turn <- struct{}{}
		time.Sleep(2 * time.Hour)
		l.lastLookAt("b")
		if l.last["a"] != first {
			t.Error("it is forgotten while it is under way")
		}
		<-first.turn
		l.lastLookAt("b")
		if l.last["a"] != nil {
			t.Error("it is kept for ever")
		}
	})
}

// TestALookHolds for whom it may.
func TestALookHolds(t *testing.T) {
	now := time.Now()
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	for name, test := range map[string]struct {
		look         look
		asked, since time.Time
		want         bool
	}{
		"none yet":                         {look{}, now, now, false},
		"of just now":                      {look{began: at(-60), ended: at(-1)}, now, at(-70), true},
		"that began before":                {look{began: at(-60), ended: at(-1)}, now, at(-50), false},
		"of long ago":                      {look{began: at(-60), ended: at(-30)}, now, at(-70), false},
		"slow, begun while it was waited":  {look{began: at(-60), ended: at(-30)}, at(-61), at(-70), true},
		"failed while it was waited":       {look{began: at(-60), ended: at(-30), err: errors.New("x")}, at(-40), at(-70), true},
		"failed before":                    {look{began: at(-60), ended: at(-1), err: errors.New("x")}, now, at(-70), false},
		"failed, begun before what it was": {look{began: at(-60), ended: at(-1), err: errors.New("x")}, at(-50), at(-50), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.look.isValidFor(test.asked, test.since); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestWhoWaitsForALookCanGiveUp, however long the look takes.
func TestWhoWaitsForALookCanGiveUp(t *testing.T) {
	var l looks
	l.lastLookAt("a").turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.shareRecentLook(ctx, "a", time.Now(), func(context.Context) (*Waiting, error) { return nil, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
