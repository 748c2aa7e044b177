// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/queue"
)

const (
	// patience is how long the pipelines of sources that have answered wait for those of others, to be one batch with them.
	patience = 2 * time.Second
	// looksAtOnce is how many sources one plan looks at at the same time.
	looksAtOnce = 32
	// silentFor is how long a source is not looked at that did not answer in time. Its pipelines run without a look then: they
	// find out for themselves, and take longer for it, but no event about another source waits meanwhile.
	silentFor = time.Minute
)

var errSilent = errors.New("it did not answer in time a short while ago")

// silences remembers the sources that did not answer in time. The zero value remembers none.
type silences struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// of gives an error where the source did not answer lately.
func (s *silences) of(source string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, found := s.until[source]
	if found && time.Now().Before(until) {
		return errSilent
	}
	delete(s.until, source)
	return nil
}

func (s *silences) note(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = map[string]time.Time{}
	}
	s.until[source] = time.Now().Add(silentFor)
}

// answers calls look for each of n sources and gives what is to run: all of it together where all sources answer within the
// time that others are given, and else that of those which have, and then that of each other one when it does.
func answers(n int, wait time.Duration, look func(i int) []queue.Job) iter.Seq[[]queue.Job] {
	return func(yield func([]queue.Job) bool) {
		type answer struct {
			from int
			jobs []queue.Job
		}
		// There is room for all, so that nobody is left with an answer that is not taken.
		given := make(chan answer, n)
		go func() {
			slots := make(chan struct{}, looksAtOnce)
			for i := range n {
				slots <- struct{}{}
				go func() {
					defer func() { <-slots }()
					given <- answer{i, look(i)}
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
