// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// rest is a source that failed so many times in a row, and when the timer polls it again.
type rest struct {
	failures int
	until    time.Time
}

// notePollResult notes whether a poll of a source has failed, and how long it took. Servers that fail in an expensive way are then
// not polled in each short interval.
func (t *sourceTable) notePollResult(source string, failed bool, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(source)
	if !failed {
		s.rest = rest{}
		return
	}
	wait := min(queue.Backoff(s.rest.failures, source), queue.LongestBackoff(took))
	s.rest = rest{failures: s.rest.failures + 1, until: time.Now().Add(wait)}
}

// isResting reports whether the timer leaves out a source because it keeps failing. Events and requests poll it
// nevertheless.
func (t *sourceTable) isResting(source string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Now().Before(t.of(source).rest.until)
}
