// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"time"
)

// idleTeam counts the places of what is done while nobody else wants them. No namespace has this name.
const idleTeam = "\x00idle"

// idleGrace is how long what is done while nobody else wants its place may take to end once it is stopped, and keeps the place meanwhile.
const idleGrace = 10 * time.Second

// WhenIdle calls do at a place that nobody else wants, and stops it as soon as somebody does: its context ends, and it is called again
// when there is a place. What it does must be worth nothing until it has ended. The error is that of do, or that of ctx.
func (l *Limited) WhenIdle(ctx context.Context, do func(context.Context) error) error {
	for {
		w := l.lanes.quick.join(idleTeam, rankIdle)
		select {
		case <-w.granted:
		case <-ctx.Done():
			l.lanes.quick.leave(w)
			return ctx.Err()
		}
		if again, err := l.untilWanted(ctx, do); !again {
			return err
		}
	}
}

// untilWanted calls do at a place, and stops it once others want that. It says that do had to make way before it had ended. It waits for do
// however long that takes, as do may write what its caller reads; the place is given back without it where it hangs.
func (l *Limited) untilWanted(ctx context.Context, do func(context.Context) error) (again bool, err error) {
	doing, stop := context.WithCancelCause(ctx)
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		defer l.lanes.quick.giveBack(idleTeam)
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

// watchIdle looks after what is done at a place that nobody else wanted. It returns when the place is to be given back: what is done has ended, or
// was stopped and does not end.
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
