// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"time"
)

// idleTeam counts the places of idle work. No namespace has this name.
const idleTeam = "\x00idle"

// idleGrace is how long idle work may take to end after it is stopped; it keeps its place meanwhile.
const idleGrace = 10 * time.Second

// WhenIdle calls do at a place that no other work wants, and stops it as soon as the place is wanted: its context
// ends, and do is called again when a place is free. The work must have no effect until it has ended. The error is
// that of do, or that of ctx.
func (l *Limited) WhenIdle(ctx context.Context, do func(context.Context) error) error {
	for {
		w := l.lanes.quick.startWaiting(idleTeam, rankIdle)
		select {
		case <-w.granted:
		case <-ctx.Done():
			l.lanes.quick.stopWaiting(w)
			return ctx.Err()
		}
		if again, err := l.runUntilSlotWanted(ctx, do); !again {
			return err
		}
	}
}

// runUntilSlotWanted calls do at a place, and stops it once others want that place. It reports whether do had to yield
// before it ended. It waits for do without a limit, since do may write what its caller reads; if do hangs,
// the place is released without it.
func (l *Limited) runUntilSlotWanted(ctx context.Context, do func(context.Context) error) (again bool, err error) {
	doing, stop := context.WithCancelCause(ctx)
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		defer l.lanes.quick.releasePlace(idleTeam)
		l.watchIdle(doing, ended, func() { stop(errMakeWay) })
	}()
	defer func() {
		close(ended)
		<-watched
		stop(nil)
	}()
	err = do(doing)
	return errors.Is(context.Cause(doing), errMakeWay) && ctx.Err() == nil, err
}

// watchIdle watches idle work at a place. It returns when the place is to be released: the work has ended, or was
// stopped and does not end.
func (l *Limited) watchIdle(doing context.Context, ended <-chan struct{}, leave func()) {
	for doing.Err() == nil {
		wanted, changed := l.lanes.quick.isWanted(idleTeam, rankIdle)
		if wanted {
			leave()
			break
		}
		select {
		case <-ended:
			return
		case <-doing.Done():
		case <-changed:
		}
	}
	grace := time.NewTimer(l.lanes.grace)
	defer grace.Stop()
	select {
	case <-ended:
	case <-grace.C:
	}
}
