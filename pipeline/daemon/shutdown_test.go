// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// TestWhatDoesNotEndIsLeftBehind has a part that never ends, when the daemon is to end and after another part failed.
func TestWhatDoesNotEndIsLeftBehind(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	forever := make(chan struct{})
	defer close(forever)
	broken := errors.New("broken")
	for _, err := range []error{nil, broken} {
		all, end := context.WithCancel(t.Context())
		group, ctx := errgroup.WithContext(all)
		group.Go(func() error { <-forever; return nil })
		if err == nil {
			end()
		} else {
			group.Go(func() error { return err })
		}
		if got := waitForGroup(all, ctx, group, log); !errors.Is(got, err) {
			t.Errorf("it ended with %v, want %v", got, err)
		}
		end()
	}
	if got := strings.Count(said.String(), "is left behind"); got != 2 {
		t.Errorf("it was told %d times: %s", got, said.String())
	}
}

// lastNotices end when they are told to hurry, or never.
type lastNotices struct {
	hurried chan struct{}
	hangs   bool
	logged  bool
}

func (n *lastNotices) Hurry() { close(n.hurried) }
func (n *lastNotices) Wait() {
	if <-n.hurried; n.hangs {
		select {}
	}
}
func (n *lastNotices) LogUnsent() { n.logged = true }

// TestTheLastNotificationsAreHurried and those that are not sent in time are logged.
func TestTheLastNotificationsAreHurried(t *testing.T) {
	for hangs, longest := range map[bool]time.Duration{false: time.Minute, true: time.Millisecond} {
		n := &lastNotices{hurried: make(chan struct{}), hangs: hangs}
		if sendLastNotices(n, longest, slog.New(slog.DiscardHandler)); n.logged != hangs {
			t.Errorf("where they hang, %v: logged %v", hangs, n.logged)
		}
	}
}
