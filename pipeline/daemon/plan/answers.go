// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/queue"
)

const (
	// batchWait is how long the pipelines of sources that have answered wait for those of others, to be one batch with them.
	batchWait = 2 * time.Second
	// looksAtOnce is how many sources one plan looks at at the same time, and targetsAtOnce at what is published of how many.
	looksAtOnce   = 32
	targetsAtOnce = 128
	// unresponsiveFor is how long a source is not looked at that did not answer in time. Its pipelines run without a look then: they
	// find out for themselves, and take longer for it, but no event about another source waits meanwhile.
	unresponsiveFor = time.Minute
	// planningWait is how long others wait for a source's turn while its answer is being evaluated, which is slow for
	// many pipelines.
	planningWait = 30 * time.Second
)

var errUnresponsive = errors.New("it did not answer in time a moment ago")

// unresponsiveSources remembers the sources that did not answer in time. The zero value remembers none.
type unresponsiveSources struct {
	mu    sync.Mutex
	until map[string]time.Time
	waits map[string]time.Time // until when others wait for looks that are under way
}

// acquirePollTurn waits for the turn to poll a source. It returns an error if polling is pointless: the source did not
// answer recently, or another caller has been waiting for its answer for a while. done must be called in any case.
func (s *unresponsiveSources) acquirePollTurn(ctx context.Context, source string, turn *sync.Mutex) (done func(), err error) {
	for {
		if turn.TryLock() {
			return func() { s.endPoll(source); turn.Unlock() }, s.beginPoll(source)
		}
		if s.isWaiting(source) {
			return func() {}, errUnresponsive
		}
		select {
		case <-ctx.Done():
			return func() {}, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *unresponsiveSources) beginPoll(source string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until, found := s.until[source]; found && time.Now().Before(until) {
		return errUnresponsive
	}
	delete(s.until, source)
	s.deferNextPoll(source, batchWait)
	return nil
}

// recordSourceAnswer records that a source has answered, whichever caller has its turn.
func (s *unresponsiveSources) recordSourceAnswer(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deferNextPoll(source, planningWait)
}

func (s *unresponsiveSources) deferNextPoll(source string, wait time.Duration) {
	if s.waits == nil {
		s.waits = map[string]time.Time{}
	}
	s.waits[source] = time.Now().Add(wait)
}

func (s *unresponsiveSources) endPoll(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waits, source)
}

// isWaiting reports whether polling a source is slow.
func (s *unresponsiveSources) isWaiting(source string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, looking := s.waits[source]
	return looking && time.Now().After(until)
}

func (s *unresponsiveSources) markUnresponsive(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = map[string]time.Time{}
	}
	now := time.Now()
	maps.DeleteFunc(s.until, func(_ string, until time.Time) bool { return now.After(until) })
	s.until[source] = now.Add(unresponsiveFor)
}

// isUnresponsive reports whether a source did not answer lately.
func (s *unresponsiveSources) isUnresponsive(source string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.until[source])
}

// forgetSource drops a source that is no longer used.
func (s *unresponsiveSources) forgetSource(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.until, source)
}

// batchSize is how many of the jobs of a batch the others are to wait for: not those of pipelines that are at it and failing.
func (p *Planner) batchSize(jobs []queue.Job, pending map[string]bool) int {
	count := 0
	for _, job := range jobs {
		if !pending[job.Pipeline] || p.Store.Get(job.Pipeline).Failures == 0 {
			count++
		}
	}
	return count
}

// collectJobs calls look for each of n sources and yields the jobs to run: all together if all sources answer
// within wait, and otherwise first those of the sources that have answered, then those of each remaining source
// when it answers. look calls answered, once, when it proceeds to check the published state: others poll their
// sources then.
func collectJobs(n int, wait time.Duration, look func(i int, answered func()) []queue.Job) iter.Seq[[]queue.Job] {
	return func(yield func([]queue.Job) bool) {
		type answer struct {
			from int
			jobs []queue.Job
		}
		// The buffer holds all answers, so that no sender blocks on one that is not received.
		given := make(chan answer, n)
		go func() {
			sources, targets := make(chan struct{}, looksAtOnce), make(chan struct{}, targetsAtOnce)
			for i := range n {
				sources <- struct{}{}
				go func() {
					s := slot{of: sources}
					defer s.releaseSlot()
					given <- answer{i, look(i, func() { s.waitForSlot(targets) })}
				}()
			}
		}()
		timer := time.NewTimer(wait)
		defer timer.Stop()
		first := make([][]queue.Job, n)
		left := n
		for late := false; left > 0 && !late; {
			select {
			case a := <-given:
				first[a.from] = a.jobs
				left--
			case <-timer.C:
				late = true
			}
		}
		if !yield(slices.Concat(first...)) {
			return
		}
		for ; left > 0; left-- {
			if !yield((<-given).jobs) {
				return
			}
		}
	}
}

// slot is one of those that a plan has. A look that was left behind may still ask for another one.
type slot struct {
	mu   sync.Mutex
	of   chan struct{}
	left bool
}

// waitForSlot waits for another slot, and leaves this one then.
func (s *slot) waitForSlot(other chan struct{}) {
	other <- struct{}{}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left {
		<-other
		return
	}
	<-s.of
	s.of = other
}

func (s *slot) releaseSlot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	<-s.of
}
