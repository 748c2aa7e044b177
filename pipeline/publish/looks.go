// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"sync"
	"time"
)

// lookAgainAfter is how long after its end a look at a pull request is valid for all pipelines whose results wait for
// it.
const lookAgainAfter = 2 * time.Second

// looks are the last looks at pull requests.
type looks struct {
	mu   sync.Mutex
	last map[string]*look
}

// look is the last look at one pull request. It is for who holds turn.
type look struct {
	turn         chan struct{}
	began, ended time.Time
	waiting      *Waiting
	err          error
	touched      time.Time // last use; guarded by the mutex
}

// lastLookAt returns the last look at a pull request, and drops those that were not used for an hour.
func (l *looks) lastLookAt(key string) *look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[string]*look{}
	}
	for old, one := range l.last {
		if old == key || time.Since(one.touched) <= time.Hour {
			continue
		}
		select {
		case one.turn <- struct{}{}:
			delete(l.last, old)
			<-one.turn
		default: // a look is in progress
		}
	}
	one := l.last[key]
	if one == nil {
		one = &look{turn: make(chan struct{}, 1)}
		l.last[key] = one
	}
	one.touched = time.Now()
	return one
}

// shareRecentLook returns the result of a look at a pull request that has seen everything that existed at a time. One
// look serves all callers that wait when it begins, regardless of its duration, and so does its error: a host that does
// not answer is not asked again for each of them.
func (l *looks) shareRecentLook(ctx context.Context, key string, since time.Time, do func(context.Context) (*Waiting, error)) (*Waiting, error) {
	arrived := time.Now()
	one := l.lastLookAt(key)
	select {
	case one.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-one.turn }()
	if one.isValidFor(arrived, since) {
		return one.waiting, one.err
	}
	began := time.Now()
	waiting, err := do(ctx)
	if ctx.Err() != nil {
		return waiting, err // that is about this caller alone
	}
	one.began, one.ended, one.waiting, one.err = began, time.Now(), waiting, err
	return waiting, err
}

// isValidFor reports whether the look is valid for a caller that asked at the time asked about the state at the time
// since.
func (l *look) isValidFor(asked, since time.Time) bool {
	switch {
	case l.ended.IsZero() || l.began.Before(since):
		return false
	case l.err != nil:
		return asked.Before(l.ended)
	}
	return !l.began.Before(asked) || time.Since(l.ended) <= lookAgainAfter
}
