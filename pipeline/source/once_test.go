// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prerig/prerig/pipeline/source"
)

// TestAThingIsAskedForOnce has many want it while the first is asking.
func TestAThingIsAskedForOnce(t *testing.T) {
	for _, last := range []int{0, 2} {
		once := source.Once[string]{Last: last}
		var asked atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				got, err := once.Get("key", func() (string, error) { return fmt.Sprint("answer ", asked.Add(1)), nil })
				if got != "answer 1" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			})
		}
		all.Wait()
		if other, err := once.Get("other", func() (string, error) { return "another", nil }); other != "another" || err != nil {
			t.Errorf("another key: %q, %v", other, err)
		}
	}
}

// TestErrorsAreRememberedWhereEverythingIs, and else each asks for itself, as its own time may be longer.
func TestErrorsAreRememberedWhereEverythingIs(t *testing.T) {
	for last, want := range map[int]int{0: 1, 2: 3} {
		once := source.Once[string]{Last: last}
		asked := 0
		for range 3 {
			if _, err := once.Get("key", func() (string, error) { asked++; return "", errors.New("no answer") }); err == nil {
				t.Error("an error is an answer")
			}
		}
		if asked != want {
			t.Errorf("with Last %d it is asked for %d times, want %d", last, asked, want)
		}
	}
}

// TestWhoWaitedInVainAsks: the first asker's time is over, not that of the one who waits for it.
func TestWhoWaitedInVainAsks(t *testing.T) {
	once := source.Once[string]{Last: 1}
	asking, fail := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := once.Get("key", func() (string, error) { close(asking); <-fail; return "", errors.New("no time left") }); err == nil {
			t.Error("the first one's error is lost")
		}
	})
	<-asking
	all.Go(func() {
		if got, err := once.Get("key", func() (string, error) { return "mine", nil }); got != "mine" || err != nil {
			t.Errorf("the second one gets %q, %v", got, err)
		}
	})
	close(fail)
	all.Wait()
}

func TestOnlyTheLastAnswersAreRemembered(t *testing.T) {
	once := source.Once[int]{Last: 2}
	asked := 0
	for i, step := range []struct {
		key string
		ask bool
	}{{"a", true}, {"b", true}, {"a", false}, {"c", true}, {"b", false}, {"a", true}, {"c", false}, {"b", true}} {
		before := asked
		if _, err := once.Get(step.key, func() (int, error) { asked++; return asked, nil }); err != nil || (asked > before) != step.ask {
			t.Errorf("step %d, %s: asked %v, %v", i, step.key, asked > before, err)
		}
	}
}
