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
func (p *Planner) notePollResult(source string, failed bool, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !failed {
		delete(p.rests, source)
		return
	}
	if p.rests == nil {
		p.rests = map[string]rest{}
	}
	failures := p.rests[source].failures + 1
	wait := min(queue.Backoff(failures-1, source), queue.LongestBackoff(took))
	p.rests[source] = rest{failures: failures, until: time.Now().Add(wait)}
}

// isResting reports whether the timer leaves out a source because it keeps failing. Events and requests poll it
// nevertheless. The caller holds the lock.
func (p *Planner) isResting(source string, now time.Time) bool {
	return now.Before(p.rests[source].until)
}
