// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// TestJobFromBeforeTheClockWasPutBack expects a job to run whose time has come by a clock that was an hour ahead, and that
// another one waits for its time.
func TestJobFromBeforeTheClockWasPutBack(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	then := time.Now().Add(time.Hour)
	soon := time.Now().Add(300 * time.Millisecond)
	for _, j := range []Job{
		{Pipeline: "back", Since: then, NotBefore: then.Add(time.Second)},
		{Pipeline: "waits", Since: time.Now(), NotBefore: soon},
	} {
		if err := q.Request(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ran := map[string]time.Time{}
	err := q.Work(ctx, 1, func(_ context.Context, j Job) error {
		ran[j.Pipeline] = time.Now()
		if len(ran) == 2 {
			cancel()
		}
		return nil
	})
	if err != nil || len(ran) != 2 {
		t.Fatalf("ran %v: %v", ran, err)
	}
	if early := soon.Sub(ran["waits"]); early > 0 {
		t.Errorf("a job ran %s before its time", early)
	}
}

// TestAnEventThatIsTooLargeBreaksNothing expects an error for it, and that the server is not started again.
func TestAnEventThatIsTooLargeBreaksNothing(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	large := event.Event{ID: "large", Receiver: "git", Changes: []event.Change{{Git: &event.GitChange{URLs: []string{strings.Repeat("x", 2<<20)}}}}}
	if _, err := q.Put(t.Context(), large); err == nil {
		t.Error("an event of 2 MB was stored")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	if err := q.Watch(ctx); err != nil {
		t.Error(err)
	}
	if duplicate, err := q.Put(t.Context(), event.Event{ID: "small", Receiver: "git"}); err != nil || duplicate {
		t.Errorf("after it: %v, %v", duplicate, err)
	}
}
