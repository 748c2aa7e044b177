// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"slices"
	"sync"
)

// places limits the number of concurrent renders and shares it between teams: a place that becomes free is assigned
// to the team that holds the fewest, and among these to the longest waiter. With a reserve, no team gets the last
// place. It is safe for concurrent use.
type places struct {
	count int
	// most is how many of them one team may hold.
	most int

	mu      sync.Mutex
	held    map[string]int // by team
	taken   int
	waiters []*waiter     // in the order in which they came
	changed chan struct{} // closed when a new waiter arrives or a place is released
}

// waiter is one render that waits for a place.
type waiter struct {
	team    string
	rank    rank
	granted chan struct{} // closed once it has a place
}

// rank is a priority: lower ranks come first.
type rank int

const (
	// rankFirst is the default, rankSlow is for renders that take long, rankIdle for work that no caller waits for.
	rankFirst rank = iota
	rankSlow
	rankIdle
)

// newPlaces returns a number of places, of which one team may hold all, or with reserve all but one.
func newPlaces(count int, reserve bool) *places {
	p := &places{count: count, most: count, held: map[string]int{}, changed: make(chan struct{})}
	if reserve && count > 1 {
		p.most = count - 1
	}
	return p
}

// tryTake acquires a place for a team if it may have one now. No waiter could have had this place.
func (p *places) tryTake(team string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == p.count || p.held[team] >= p.most {
		return false
	}
	p.countAssignedPlace(team)
	return true
}

// acquirePlace waits for a place. Its error is that of the context.
func (p *places) acquirePlace(ctx context.Context, team string) error {
	w := p.startWaiting(team, rankFirst)
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		p.stopWaiting(w)
		return ctx.Err()
	}
}

// startWaiting begins to wait, and may have got a place already when it returns. Who joins has to leave, or to use the
// place.
func (p *places) startWaiting(team string, rank rank) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &waiter{team: team, rank: rank, granted: make(chan struct{})}
	p.waiters = append(p.waiters, w)
	p.assignFreePlaces()
	return w
}

// stopWaiting stops waiting, and releases the place if one was assigned in the meantime.
func (p *places) stopWaiting(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiters, w); i >= 0 {
		p.waiters = slices.Delete(p.waiters, i, i+1)
		return
	}
	p.releaseLocked(w.team)
}

// releasePlace releases a team's place to the next waiter.
func (p *places) releasePlace(team string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.releaseLocked(team)
}

// releaseLocked is releasePlace for who holds the lock.
func (p *places) releaseLocked(team string) {
	p.taken--
	if p.held[team]--; p.held[team] == 0 {
		delete(p.held, team)
	}
	p.assignFreePlaces()
}

// countAssignedPlace counts a place for a team.
func (p *places) countAssignedPlace(team string) {
	p.taken++
	p.held[team]++
}

// assignFreePlaces assigns free places to waiters, and notifies those that watch for changes.
func (p *places) assignFreePlaces() {
	for p.taken < p.count {
		best := p.nextEligibleWaiter(func(team string) int { return p.held[team] })
		if best == nil {
			break
		}
		p.waiters = slices.DeleteFunc(p.waiters, func(w *waiter) bool { return w == best })
		p.countAssignedPlace(best.team)
		close(best.granted)
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// nextEligibleWaiter returns the waiter for the next place, considering how many places each team holds, or nil if no
// waiter may have it.
func (p *places) nextEligibleWaiter(held func(team string) int) *waiter {
	var best *waiter
	for _, w := range p.waiters {
		switch {
		case held(w.team) >= p.most:
		case best == nil, w.rank < best.rank, w.rank == best.rank && held(w.team) < held(best.team):
			best = w
		}
	}
	return best
}

// isWanted reports whether a waiter ahead of a rank would get a team's place if it was released. It returns a
// channel that is closed when the answer may have changed.
func (p *places) isWanted(team string, than rank) (bool, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.nextEligibleWaiter(func(t string) int {
		if t == team {
			return p.held[t] - 1
		}
		return p.held[t]
	})
	return next != nil && next.rank < than, p.changed
}
