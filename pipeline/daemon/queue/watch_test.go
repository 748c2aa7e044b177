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

// TestLateAnswersAreNoFailure: on a machine that was busy the daemon started again, and again, as its own queue had answered late.
func TestLateAnswersAreNoFailure(t *testing.T) {
	q, _ := telling(t, statetest.Dir(t))
	defer q.Close()
	late := fmt.Errorf("taking a lock: %w", context.DeadlineExceeded)
	for range 100 {
		if err := q.noteWriteError(late); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	if q.broken.Load() {
		t.Error("late answers count as a failure to write")
	}
	if err := q.Save(t.Context(), "a", nil); err != nil {
		t.Fatal(err)
	}
	if q.silentSince.Load() != 0 {
		t.Error("an answer does not end the silence")
	}
	q.silentSince.Store(1)
	passed := q.clock.passed
	q.clock.passed = func() time.Duration { return passed() + longestSilence + time.Second }
	_ = q.noteWriteError(late)
	if !q.broken.Load() {
		t.Error("a server that answers nothing is not noticed")
	}
}

// TestFailedWritesAreNoticed keeps the other half: what the server could not write is a failure at once.
func TestFailedWritesAreNoticed(t *testing.T) {
	q, _ := telling(t, statetest.Dir(t))
	defer q.Close()
	_ = q.noteWriteError(errors.New("no space left on device"))
	if !q.broken.Load() {
		t.Error("a failed write is not noticed")
	}
}
