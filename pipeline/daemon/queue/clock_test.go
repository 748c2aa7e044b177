// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// TestWaitingJobsComeAgainWhenTheClockIsSetBack: the server would count the time that they wait by a clock that has to
// catch up first. Here they wait for longer than the test may take.
func TestWaitingJobsComeAgainWhenTheClockIsSetBack(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	var offset atomic.Int64
	real := q.clock.wall
	q.clock.wall = func() time.Time { return real().Add(time.Duration(offset.Load())) }
	for _, pipeline := range []string{"a", "b", "c"} {
		if err := q.Request(t.Context(), Job{Pipeline: pipeline, Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var tried atomic.Int64
	done := map[string]bool{}
	err := q.Work(ctx, 1, func(_ context.Context, j Job) error {
		if offset.Load() == 0 {
			if tried.Add(1) == 3 {
				offset.Store(int64(-time.Hour))
			}
			return &RetryError{After: time.Hour, Err: errors.New("not yet")}
		}
		done[j.Pipeline] = true
		if len(done) == 3 {
			cancel()
		}
		return nil
	})
	if err != nil || len(done) != 3 {
		t.Errorf("%d of 3 jobs came again: %v", len(done), err)
	}
}

// TestOnlyAClockThatWasSetBackCounts: neither the time that passes nor one that is set forward has all jobs come again.
func TestOnlyAClockThatWasSetBackCounts(t *testing.T) {
	var passed, wall atomic.Int64
	c := clock{
		wall:   func() time.Time { return time.Unix(1_700_000_000, wall.Load()) },
		passed: func() time.Duration { return time.Duration(passed.Load()) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	counted := make(chan int, 1)
	steps := []time.Duration{0, time.Hour, 365 * 24 * time.Hour, -time.Hour, 500 * time.Millisecond, -2 * time.Second}
	next := 0
	c.wall = func() time.Time {
		if next < len(steps) {
			wall.Add(int64(time.Second + steps[next]))
			passed.Add(int64(time.Second))
			next++
		} else {
			cancel()
		}
		return time.Unix(1_700_000_000, wall.Load())
	}
	count := 0
	c.whenSetBack(ctx, func() { count++ })
	counted <- count
	if got := <-counted; got != 2 {
		t.Errorf("the clock was set back twice, and %d were noticed", got)
	}
}
