// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"testing"
	"time"
)

// TestFilesFromTheFutureAreOld: after the clock was set back nothing would be compacted until it is there again.
func TestFilesFromTheFutureAreOld(t *testing.T) {
	m := mirrorIn(t, t.TempDir())
	before, err := compactBefore(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for ago, newer := range map[time.Duration]bool{
		0: true, time.Minute: true, 2 * time.Hour: false, -time.Minute: true, -2 * time.Hour: false, -365 * 24 * time.Hour: false,
	} {
		if got := before.isNewerTime(now.Add(-ago)); got != newer {
			t.Errorf("stored %s ago: it is newer: %t", ago, got)
		}
		if anyAge.isNewerTime(now.Add(-ago)) {
			t.Errorf("stored %s ago: it is not taken", ago)
		}
	}
}
