// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package budget bounds the joint use of a resource by several teams, such as memory for the answers of foreign
// servers. Each team has a share that it cannot exceed, so that a greedy one leaves room for the others.
package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrBusy is the cause of errors about a budget that others hold for too long. Trying again later helps.
var ErrBusy = errors.New("others hold what there is")

// Budget is an amount that is shared. It is safe for concurrent use.
type Budget struct {
	share    int64
	patience time.Duration

	mu      sync.Mutex
	free    int64
	held    map[string]int64 // by team
	waiting []*waiter        // in the order in which they came
}

type waiter struct {
	team    string
	amount  int64
	granted chan struct{}
}

// New returns a budget of an amount, of which one team holds no more than its share. A lease is waited for no longer
// than patience.
func New(amount, share int64, patience time.Duration) *Budget {
	return &Budget{share: min(share, amount), patience: patience, free: amount, held: map[string]int64{}}
}

// Lease is a held part of a budget. It must be used by only one goroutine at a time.
type Lease struct {
	of   *Budget
	team string
	held int64
}

// Lease returns an empty lease for a team.
func (b *Budget) Lease(team string) *Lease { return &Lease{of: b, team: team} }

// Grow waits until the lease holds an amount, which may be less than it holds already. No lease holds more than a
// team's share: more than that is as good as the share. The error is that of the context, or has [ErrBusy] as its
// cause.
func (l *Lease) Grow(ctx context.Context, amount int64) error {
	more := min(amount, l.of.share) - l.held
	if more <= 0 {
		return nil
	}
	if err := l.of.acquireBudget(ctx, l.team, more); err != nil {
		return err
	}
	l.held += more
	return nil
}

// Release returns all that the lease holds. The lease may grow again.
func (l *Lease) Release() {
	l.of.returnBudget(l.team, l.held)
	l.held = 0
}

func (b *Budget) acquireBudget(ctx context.Context, team string, amount int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &waiter{team: team, amount: amount, granted: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, w)
	b.grantToWaiters()
	b.mu.Unlock()
	timer := time.NewTimer(b.patience)
	defer timer.Stop()
	var err error
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = fmt.Errorf("waiting for %s: %w", b.patience, ErrBusy)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.Index(b.waiting, w)
	if at < 0 {
		return nil // it was granted meanwhile
	}
	b.waiting = slices.Delete(b.waiting, at, at+1)
	b.grantToWaiters() // those behind it may fit
	return err
}

func (b *Budget) returnBudget(team string, amount int64) {
	if amount == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += amount
	if b.held[team] -= amount; b.held[team] == 0 {
		delete(b.held, team)
	}
	b.grantToWaiters()
}

// grantToWaiters serves those who wait: first the team that holds least, and of a team who came first. A team at its
// share waits for itself; one that is next and does not fit keeps the others waiting, or it would never fit. The caller
// holds the lock.
func (b *Budget) grantToWaiters() {
	for {
		next := -1
		for i, w := range b.waiting {
			if b.held[w.team]+w.amount <= b.share && (next < 0 || b.held[w.team] < b.held[b.waiting[next].team]) {
				next = i
			}
		}
		if next < 0 || b.waiting[next].amount > b.free {
			return
		}
		w := b.waiting[next]
		b.waiting = slices.Delete(b.waiting, next, next+1)
		b.free -= w.amount
		b.held[w.team] += w.amount
		close(w.granted)
	}
}
