// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// TestSourcesThatAnswerDoNotWaitForOthers has sources that answer at once, and ones that do when they are let.
func TestSourcesThatAnswerDoNotWaitForOthers(t *testing.T) {
	hanging := map[int]chan struct{}{2: make(chan struct{}), 5: make(chan struct{})}
	order := []int{5, 2}
	look := func(i int, _ func()) []queue.Job {
		if c := hanging[i]; c != nil {
			<-c
		}
		return []queue.Job{{Pipeline: fmt.Sprint(i, "a")}, {Pipeline: fmt.Sprint(i, "b")}}
	}
	var got [][]string
	for jobs := range collectJobs(7, 100*time.Millisecond, look) {
		var names []string
		for _, job := range jobs {
			names = append(names, job.Pipeline)
		}
		got = append(got, names)
		if len(order) > 0 {
			close(hanging[order[0]])
			order = order[1:]
		}
	}
	want := [][]string{{"0a", "0b", "1a", "1b", "3a", "3b", "4a", "4b", "6a", "6b"}, {"5a", "5b"}, {"2a", "2b"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is to run (-want +got):\n%s", diff)
	}
}

func TestAllThatAnswerSoonAreOneBatch(t *testing.T) {
	var got []int
	for jobs := range collectJobs(100, time.Minute, func(int, func()) []queue.Job { return make([]queue.Job, 3) }) {
		got = append(got, len(jobs))
	}
	if diff := cmp.Diff([]int{300}, got); diff != "" {
		t.Errorf("sizes of batches (-want +got):\n%s", diff)
	}
	for range collectJobs(40, time.Minute, func(int, func()) []queue.Job { return nil }) {
		break // the rest is not taken, and nobody is stuck with it
	}
}

func TestSilentSources(t *testing.T) {
	var s unresponsiveSources
	var turn sync.Mutex
	begin := func(want error) func() {
		t.Helper()
		done, err := s.acquirePollTurn(t.Context(), "a", &turn)
		if !errors.Is(err, want) {
			t.Fatalf("got %v, want %v", err, want)
		}
		return done
	}
	done := begin(nil)
	// Others wait for the one that looks, but not for long.
	s.waits["a"] = time.Now().Add(-time.Hour)
	begin(errUnresponsive)()
	s.markUnresponsive("a")
	done()
	begin(errUnresponsive)()
	s.until["a"] = time.Now().Add(-time.Second)
	done = begin(nil)
	s.waits["a"] = time.Now().Add(-time.Hour)
	s.recordSourceAnswer("a") // what follows from it takes long
	waited := make(chan error)
	go func() {
		done, err := s.acquirePollTurn(t.Context(), "a", &turn)
		done()
		waited <- err
	}()
	time.Sleep(20 * time.Millisecond)
	done()
	if err := <-waited; err != nil {
		t.Errorf("one that waited for a look was told %v", err)
	}
	if len(s.until) != 0 || len(s.waits) != 0 {
		t.Errorf("it remembers %v and %v", s.until, s.waits)
	}
}

// TestLooksAtWhatIsPublishedHoldUpNoSource has so many sources answer as are looked at at once, and what is published of them take long.
func TestLooksAtWhatIsPublishedHoldUpNoSource(t *testing.T) {
	last := make(chan struct{})
	look := func(i int, answered func()) []queue.Job {
		if i == looksAtOnce {
			close(last)
			return nil
		}
		answered()
		select {
		case <-last:
		case <-time.After(30 * time.Second):
			t.Errorf("source %d is not looked at", looksAtOnce)
		}
		return nil
	}
	for range collectJobs(looksAtOnce+1, time.Minute, look) {
	}
}
