// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/backoff"
)

func TestDelayDoublesUpToTheLongest(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: 100, 1: 100, 2: 200, 3: 400, 4: 800, 5: 1000, 100: 1000} {
		want *= time.Millisecond
		seen := map[time.Duration]bool{}
		for range 100 {
			got := backoff.Delay(100*time.Millisecond, time.Second, failures)
			if got < want/2 || got > want {
				t.Errorf("after %d failures: %s, want %s to %s", failures, got, want/2, want)
			}
			seen[got] = true
		}
		if len(seen) < 2 {
			t.Errorf("after %d failures all wait for the same time", failures)
		}
	}
	if got := backoff.Delay(0, 0, 3); got != 0 {
		t.Errorf("of nothing: %s", got)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	gone := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := backoff.Wait(ctx, time.Hour); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	if err := backoff.Wait(t.Context(), time.Millisecond); err != nil {
		t.Error(err)
	}
}
