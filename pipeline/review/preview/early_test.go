// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
)

// TestAPreviewDoesNotWaitForAClockThatWasSetBack: what is further ahead than anything has one wait was noted by
// another clock.
func TestAPreviewDoesNotWaitForAClockThatWasSetBack(t *testing.T) {
	now := time.Now()
	for ahead, early := range map[time.Duration]bool{0: false, -time.Hour: false, time.Second: true, time.Hour: true, 3 * time.Hour: false, 365 * 24 * time.Hour: false} {
		if got := isEarly(&status.Preview{NotBefore: now.Add(ahead)}, now); got != early {
			t.Errorf("in %s: it waits: %t", ahead, got)
		}
	}
}
