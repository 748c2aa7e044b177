// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
)

// shutdownGrace is how long work in progress may take to end. Longer work is abandoned: its job was not
// acknowledged and is redelivered, as after a kill. Service managers and clusters kill processes that do not end
// soon.
const shutdownGrace = 5 * time.Second

// waitForGroup waits for the group, whose context is inner. Once that is done it does not wait for long. That ctx is done, to which
// inner belongs, is no error.
func waitForGroup(ctx, inner context.Context, group *errgroup.Group, log *slog.Logger) error {
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = group.Wait()
	}()
	select {
	case <-ended:
		return err
	case <-inner.Done():
	}
	begin := time.Now()
	if endsWithin(shutdownGrace, func() { <-ended }) {
		log.Info("everything that was running has finished", "took", time.Since(begin))
		return err
	}
	log.Error("something does not finish and is left behind; its work is done again after the next start", "after", time.Since(begin))
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(inner)
}

// notices is what sends notifications: *run.Runner.
type notices interface {
	Hurry()
	Wait()
	LogUnsent()
}

// sendLastNotices has the notifications sent that are still to be, for so long at most, and logs what is not.
func sendLastNotices(n notices, longest time.Duration, log *slog.Logger) {
	n.Hurry()
	if !endsWithin(longest, n.Wait) {
		log.Warn("the daemon ends before all notifications are sent")
		n.LogUnsent()
	}
}

// endsWithin reports whether wait returns in time. It is left behind where it does not.
func endsWithin(longest time.Duration, wait func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	select {
	case <-done:
		return true
	case <-time.After(longest):
		return false
	}
}
