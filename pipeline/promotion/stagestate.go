// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
)

// takenBack are the rollbacks, by the pipelines that they are about.
type takenBack struct{ underWay, done map[string]status.Rollback }

func takenBackIn(all []status.Rollback) takenBack {
	out := takenBack{map[string]status.Rollback{}, map[string]status.Rollback{}}
	for _, r := range slices.Backward(all) { // the newest is the last that is entered
		into := out.done
		if !r.Ended() {
			into = out.underWay
		}
		for _, key := range r.Pipelines {
			into[key] = r
		}
	}
	return out
}

// overrideState replaces the state of a group by what people have done to its pipelines since it was decided: nothing
// is decided about pipelines that publish nothing. Only the members that the reader may know of count.
func (s *StageStatus) overrideState(members []member, of takenBack, to reader) {
	var held, rolledBack, failing []member
	for _, m := range members {
		if r, found := of.underWay[m.key]; found {
			s.State, s.Since, s.Until = StageRollingBack, r.At, time.Time{}
			s.Number, s.URL, s.Message = r.Number, r.URL, "a rollback is under way"
			if !slices.ContainsFunc(r.Pipelines, func(key string) bool { return !to.may(key) }) {
				s.Message = cmp.Or(r.Message, s.Message)
			}
			return
		}
		hold := m.control.OnHold
		condition := m.state.Condition()
		switch {
		case hold != nil:
			held = append(held, m)
			if of.done[m.key].ID == hold.Rollback && hold.Rollback != "" {
				rolledBack = append(rolledBack, m)
			}
		case condition != nil && condition.Status != "True" && !m.state.IsDrifted() && !m.control.Suspended:
			failing = append(failing, m)
		}
	}
	isSettled := s.State == StageDone || s.State == StageIdle
	switch {
	case len(rolledBack) > 0 && len(rolledBack) == len(members) && s.Waits == 0:
		s.setHold(StageRolledBack, rolledBack)
		r := of.done[rolledBack[0].key]
		s.Number, s.URL = r.Number, r.URL
	case len(held) > 0 && s.State != StageStopped:
		s.setHold(StageHeld, held)
		if len(held) < len(members) {
			s.Message = fmt.Sprintf("%d of %d pipelines are %s", len(held), len(members), s.Message)
		}
	case len(failing) > 0 && (isSettled || s.State == StageVerifying):
		s.State, s.Message, s.Until = StageFailed, failing[0].key+" fails", time.Time{}
		if more := len(failing) - 1; more > 0 {
			s.Message = fmt.Sprintf("%s and %d more fail", failing[0].key, more)
		}
	}
}

// setHold sets the state to one of pipelines that are on hold.
func (s *StageStatus) setHold(state string, held []member) {
	hold := held[0].control.OnHold
	s.State, s.Since, s.Message, s.Until = state, hold.Since, hold.Message(), time.Time{}
}

// addVersions adds the versions of Istio that the results have.
func (s *StageStatus) addVersions(members []member) {
	now, next := map[string]bool{}, map[string]bool{}
	for _, m := range members {
		for _, p := range m.state.Merged() {
			now[p.Version] = true
		}
		if m.published == nil || !m.published.PullRequest.Waits() {
			continue
		}
		for _, p := range m.state.Mesh.Rendered() {
			next[p.Version] = true
		}
	}
	s.Istio, s.Next = slices.SortedFunc(maps.Keys(now), status.NewestFirst), nil
	if next := slices.SortedFunc(maps.Keys(next), status.NewestFirst); !slices.Equal(next, s.Istio) {
		s.Next = next
	}
}

// addHeldVersions completes waves that are on hold: their pipelines are not rendered, and the other waves show which
// version they would get.
func addHeldVersions(stages []StageStatus) {
	for i := range stages {
		s := &stages[i]
		if s.State != StageHeld || len(s.Next) > 0 || len(s.Istio) == 0 {
			continue
		}
		newest := s.Istio[0]
		for _, other := range stages {
			if len(other.Istio) > 0 && status.IsNewer(other.Istio[0], newest) {
				newest = other.Istio[0]
				s.Next = []string{newest}
			}
		}
	}
}
