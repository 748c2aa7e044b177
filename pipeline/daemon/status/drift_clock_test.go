// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"
)

// TestRepairsGoOnAfterTheClockWasSetBack: the last repair is in the future then, and none would be due until the clock
// is there again.
func TestRepairsGoOnAfterTheClockWasSetBack(t *testing.T) {
	now := time.Now()
	for _, step := range []time.Duration{time.Hour, 365 * 24 * time.Hour} {
		s := &State{}
		for range 3 {
			s.NotePublished(now.Add(step), true)
		}
		if !s.RepairDue(now) {
			t.Errorf("back by %s: no repair is due", step)
		}
		if repairs := s.Repairs(now); repairs != 0 && step > RepairsForgotten {
			t.Errorf("back by %s: %d repairs count", step, repairs)
		}
	}
}
