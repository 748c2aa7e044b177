// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
)

// TestATeamLeavesAPlaceForOthers has a team want far more places than there are, for renders that do not end: with a reserve
// another team finds one at once, and with a single place, or one team's word only, nothing is kept free.
func TestATeamLeavesAPlaceForOthers(t *testing.T) {
	for _, tc := range []struct {
		count   int
		reserve bool
		want    int
	}{{1, true, 1}, {2, true, 1}, {5, true, 4}, {5, false, 5}} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			p := newPlaces(tc.count, tc.reserve)
			var hungry []*waiter
			for range 20 {
				hungry = append(hungry, p.startWaiting("hungry", rankFirst))
			}
			if p.held["hungry"] != tc.want {
				t.Errorf("the team holds %d of %d places, want %d", p.held["hungry"], tc.count, tc.want)
			}
			if got := p.tryTake("other"); got != (tc.want < tc.count) {
				t.Errorf("another team gets a place: %t", got)
			} else if got {
				p.releasePlace("other")
			}
			for _, w := range hungry {
				p.stopWaiting(w)
			}
			if p.taken != 0 || len(p.held) != 0 || len(p.waiters) != 0 {
				t.Errorf("places are lost: %d taken, held %v, %d waiting", p.taken, p.held, len(p.waiters))
			}
		})
	}
}

// TestPlacesGoRoundTheTeams has one team queue up first, and others after it: each place that becomes free goes to who holds fewest.
func TestPlacesGoRoundTheTeams(t *testing.T) {
	p := newPlaces(2, false)
	var order []string
	waiters := map[*waiter]bool{}
	ranks := map[string]rank{"late": rankSlow, "idle": rankIdle}
	join := func(team string) { waiters[p.startWaiting(team, ranks[team])] = true }
	granted := func() {
		for w := range waiters {
			select {
			case <-w.granted:
				order = append(order, w.team)
				delete(waiters, w)
			default:
			}
		}
	}
	for range 4 {
		join("hungry")
	}
	join("idle")
	join("late")
	join("b")
	join("c")
	granted()
	for range 6 {
		p.releasePlace(order[0])
		order = slices.Delete(order, 0, 1)
		granted()
	}
	// Two of the first team hold places. As they end, the others get theirs, those that yield come last, and what is idle after all.
	if len(waiters) != 0 || p.taken != 2 || order[0] != "late" || order[1] != "idle" {
		t.Errorf("%d wait, %d places are taken, the last are %v", len(waiters), p.taken, order)
	}
}

// TestPlacesUnderLoad takes and gives back from many sides, with some that end their waiting: never more places than there are, and none
// lost.
func TestPlacesUnderLoad(t *testing.T) {
	p := newPlaces(3, true)
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			team := fmt.Sprint(i % 4)
			for j := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if j%5 == 0 {
					cancel()
				}
				if err := p.acquirePlace(ctx, team); err == nil {
					p.mu.Lock()
					if p.taken > 3 || p.held[team] > 2 {
						t.Errorf("%d places are taken, %d by one team", p.taken, p.held[team])
					}
					p.mu.Unlock()
					p.releasePlace(team)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if p.taken != 0 || len(p.held) != 0 || len(p.waiters) != 0 {
		t.Errorf("places are lost: %d taken, held %v, %d waiting", p.taken, p.held, len(p.waiters))
	}
}

// TestIdleMakesWayForSlow: what nobody waits for makes way for a render that takes long, and not the other way round.
func TestIdleMakesWayForSlow(t *testing.T) {
	p := newPlaces(1, false)
	p.startWaiting(idleTeam, rankIdle)
	if wanted, _ := p.isWanted(idleTeam, rankIdle); wanted {
		t.Error("it makes way for nobody")
	}
	p.startWaiting("slow", rankSlow)
	if wanted, _ := p.isWanted(idleTeam, rankIdle); !wanted {
		t.Error("it keeps a slow render waiting")
	}
	p.releasePlace(idleTeam)
	p.startWaiting(idleTeam, rankIdle)
	if wanted, _ := p.isWanted("slow", rankSlow); wanted || p.held["slow"] != 1 {
		t.Errorf("a slow render makes way for it: %v", p.held)
	}
}
