// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
)

// idleTeam counts the places of what is done while nobody else wants them. No namespace has this name.
const idleTeam = "\x00idle"

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

// untilWanted calls do at a place that it gives back. It says that do had to make way before it had ended.
func (l *Limited) untilWanted(ctx context.Context, do func(context.Context) error) (again bool, err error) {
	doing, stop := context.WithCancelCause(ctx)
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			wanted, changed := l.lanes.quick.isWanted(idleTeam, rankIdle)
			if wanted {
				stop(errMakeWay)
				return
			}
			select {
			case <-ended:
				return
			case <-changed:
			}
		}
	}()
	err = do(doing)
	again = errors.Is(context.Cause(doing), errMakeWay) && ctx.Err() == nil
	close(ended)
	<-watched
	stop(nil)
	l.lanes.quick.giveBack(idleTeam)
	return again, err
}
