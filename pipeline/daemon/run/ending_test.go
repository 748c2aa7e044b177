// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// TestWaitingNotificationsAreSentWhenTheProcessEnds has a receiver ask for most of a minute after the first of three.
func TestWaitingNotificationsAreSentWhenTheProcessEnds(t *testing.T) {
	var calls atomic.Int32
	l := &listener{retryAfter: "57", answer: func(string) int {
		if calls.Add(1) == 1 {
			return http.StatusServiceUnavailable
		}
		return 0
	}}
	p := newTelling(t, l, "[{git: {branch: rendered}}]", tellEvent)
	for _, text := range []string{"one", "two", "three"} {
		p.publishes(text)
	}
	p.runner.Hurry()
	if heard := l.all(p.runner); !slices.Equal(heard, []string{"published", "published"}) || calls.Load() != 3 {
		t.Errorf("heard %q after %d calls", heard, calls.Load())
	}
}

// TestOnlyWhatOthersWaitForIsHurried when the process ends, also where the others come later.
func TestOnlyWhatOthersWaitForIsHurried(t *testing.T) {
	var s notices
	var log bytes.Buffer
	ends := make(chan struct{})
	add := func(id string, send func(hurried <-chan struct{})) {
		n := &notice{log: slog.New(slog.NewTextHandler(&log, nil)), hurried: make(chan struct{})}
		n.run.Run.ID = id
		n.send = func() error { send(n.hurried); return nil }
		s.enqueueNotice(queueKey{"shop", "one"}, n)
	}
	waits := func(hurried <-chan struct{}) { <-hurried }
	add("1", waits)
	add("2", waits)
	s.sendPendingOnce()
	add("3", waits) // or 2 would be the last
	begun := make(chan bool, 1)
	add("4", func(hurried <-chan struct{}) {
		select {
		case <-hurried:
			begun <- true
		default:
			begun <- false
		}
		<-ends
	})
	if <-begun {
		t.Error("the last is not tried again")
	}
	add("5", func(<-chan struct{}) {})
	s.logUnsent()
	for i := 1; i <= 5; i++ {
		if told, want := strings.Contains(log.String(), fmt.Sprintf("run=%d begun=%t", i, i == 4)), i >= 4; told != want {
			t.Errorf("of run %d is logged %v, want %v:\n%s", i, told, want, log.String())
		}
	}
	close(ends)
	s.sending.Wait()
}
