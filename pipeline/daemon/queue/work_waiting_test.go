// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// TestJobsThatWaitKeepNoOtherFromRunning: with a bound, that many pipelines whose server is down would hold up the rest, as
// each of them has a job that was begun and is to be tried again.
func TestJobsThatWaitKeepNoOtherFromRunning(t *testing.T) {
	q, err := Open(t.Context(), Options{Dir: statetest.Dir(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	for what, consumer := range map[string]jetstream.Consumer{"jobs": q.work, "events": q.events} {
		if info, err := consumer.Info(t.Context()); err != nil || info.Config.MaxAckPending > 0 {
			t.Errorf("%s: %+v, %v", what, info, err)
		}
	}
}

// TestAFullQueueIsNotStartedAgain: that would stop what is under way, and find the queue as full.
func TestAFullQueueIsNotStartedAgain(t *testing.T) {
	q, err := Open(t.Context(), Options{Dir: statetest.Dir(t), MaxStore: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	saved := 0
	for ; saved < 10 && err == nil; saved++ {
		err = q.Save(t.Context(), fmt.Sprint(saved), make([]byte, 900<<10))
	}
	if err == nil || !q.full.Load() || q.broken.Load() {
		t.Errorf("after %d writes: %v, full %v, broken %v", saved, err, q.full.Load(), q.broken.Load())
	}
}

// TestAJobThatPanicsIsTriedAgain and stops no other.
func TestAJobThatPanicsIsTriedAgain(t *testing.T) {
	q, err := Open(t.Context(), Options{Dir: statetest.Dir(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	for _, pipeline := range []string{"odd", "other"} {
		if err := q.Request(t.Context(), Job{Pipeline: pipeline}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	odd, other := 0, 0
	err = q.Work(ctx, 1, func(_ context.Context, j Job) error {
		if j.Pipeline == "other" {
			other++
			return nil
		}
		if odd++; odd == 1 {
			panic("odd")
		}
		cancel()
		return nil
	})
	if err != nil || odd != 2 || other != 1 {
		t.Errorf("%v, %d and %d times", err, odd, other)
	}
}
