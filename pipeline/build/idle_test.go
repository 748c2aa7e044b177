// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
)

// TestWhatHangsWhileIdleGivesItsPlaceBack has something that does not hear of its end hold the only place: once others want it, and once its own
// time is up. It is still waited for, and is called again only where it made way.
func TestWhatHangsWhileIdleGivesItsPlaceBack(t *testing.T) {
	for name, late := range map[string]bool{"others want it": false, "its time is up": true} {
		t.Run(name, func(t *testing.T) {
			l := Limit(nil, 1, Teams{}, slog.New(slog.DiscardHandler))
			l.lanes.grace = time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			began, release, ended := make(chan struct{}, 2), make(chan struct{}), make(chan error, 1)
			go func() {
				ended <- l.WhenIdle(ctx, func(context.Context) error {
					began <- struct{}{}
					<-release
					return nil
				})
			}()
			<-began
			if late {
				cancel()
			}
			patient, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			if err := l.lanes.quick.acquirePlace(patient, "team"); err != nil {
				t.Fatalf("the place is held by what hangs: %v", err)
			}
			select {
			case err := <-ended:
				t.Errorf("it was not waited for: %v", err)
			default:
			}
			l.lanes.quick.releasePlace("team")
			close(release)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if again := len(began) == 1; again == late {
				t.Errorf("it was called again: %t", again)
			}
			if p := l.lanes.quick; p.taken != 0 || len(p.held) != 0 || len(p.waiters) != 0 {
				t.Errorf("places are lost: %d taken, held %v, %d waiting", p.taken, p.held, len(p.waiters))
			}
		})
	}
}

// TestWhatPanicsWhileIdleGivesItsPlaceBack: whoever called recovers from it, and others go on.
func TestWhatPanicsWhileIdleGivesItsPlaceBack(t *testing.T) {
	l := Limit(nil, 1, Teams{}, slog.New(slog.DiscardHandler))
	func() {
		defer func() { _ = recover() }()
		_ = l.WhenIdle(t.Context(), func(context.Context) error { panic("broken") })
	}()
	if !l.lanes.quick.tryTake("team") {
		t.Error("the place is held")
	}
}

// TestIdleEndsByItself gives what was done, and its error.
func TestIdleEndsByItself(t *testing.T) {
	l := Limit(nil, 1, Teams{}, slog.New(slog.DiscardHandler))
	broken := errors.New("broken")
	for _, want := range []error{nil, broken} {
		if err := l.WhenIdle(t.Context(), func(context.Context) error { return want }); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if p := l.lanes.quick; p.taken != 0 {
		t.Errorf("%d places are lost", p.taken)
	}
}
