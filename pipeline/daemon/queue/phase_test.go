// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// TestPhase: it must stay what it was, or all pipelines would be looked at once more after an upgrade, and neighbours must
// not come together.
func TestPhase(t *testing.T) {
	for key, want := range map[string]float64{"": 0.9247168271715233, "team/web": 0.9082032416988752} {
		if got := Phase(key); got != want {
			t.Errorf("%q: got %v", key, got)
		}
	}
	tenths := [10]int{}
	for i := range 1000 {
		tenths[int(Phase(fmt.Sprintf("team/app%d", i))*10)]++
	}
	for i, n := range tenths {
		if n < 60 || n > 140 {
			t.Errorf("%d of 1000 are in tenth %d", n, i)
		}
	}
}

func TestTryingAgainTakesLongerEachTimeAndHasABound(t *testing.T) {
	last := time.Duration(0)
	for failures := range 70 {
		wait := Backoff(failures, "a")
		if wait < last || wait > 6*time.Minute || wait < time.Second {
			t.Errorf("after %d failures: %s after %s", failures, wait, last)
		}
		last = wait
	}
	if last < 5*time.Minute || Backoff(10, "a") == Backoff(10, "b") {
		t.Errorf("at last %s, two pipelines %s and %s", last, Backoff(10, "a"), Backoff(10, "b"))
	}
}

func TestLongestBackoffFollowsTheCostOfATry(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: 30 * time.Second, 300 * time.Millisecond: 30 * time.Second, time.Second: 100 * time.Second, 10 * time.Second: 5 * time.Minute,
		math.MaxInt64: 5 * time.Minute,
	} {
		if got := LongestBackoff(took); got != want {
			t.Errorf("after a try of %s: %s, want %s", took, got, want)
		}
	}
}
