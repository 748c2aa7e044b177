// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"
)

// Unpolled are the sources that are not polled as often as their pipelines ask for.
type Unpolled struct {
	// Pipelines whose source has not been polled for too long, sorted.
	Pipelines []string
	// Sources is how many sources they have, Polled how many sources are to be polled in all.
	Sources, Polled int
}

const (
	// unpolledIntervals and unpolledGrace are after how many intervals, and how much more, a source counts as no
	// longer polled: many that do not answer in time hold up those after them.
	unpolledIntervals = 3
	unpolledGrace     = 2 * time.Minute
)

// recordPollEnd notes that a look at a source has ended, whether or not the source has answered.
func (t *sourceTable) recordPollEnd(source string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(source).polled = time.Now()
}

// lastPoll returns when a look at a source ended last; for one without a look, when it was first expected, and for one that rests, when
// its rest ends.
func (t *sourceTable) lastPoll(source string, now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(source)
	if s.expected.IsZero() {
		s.expected = now
	}
	last := s.polled
	for _, at := range []time.Time{s.expected, s.rest.until} {
		if at.After(last) {
			last = at
		}
	}
	return last
}

// Unpolled returns the sources that should have been polled by now but were not, whatever the reason: a poll hangs,
// or the timer does. A source that does not answer counts as polled, and one that keeps failing as well until its
// next poll is due; the status of its pipelines reports it. Before Timer runs the result is empty. The times are of a
// monotonic clock.
func (p *Planner) Unpolled() (out Unpolled) {
	p.mu.Lock()
	began := p.timing
	p.mu.Unlock()
	if began.IsZero() {
		return out
	}
	now := time.Now()
	seen := map[string]bool{} // sources, and whether they are polled
	for _, e := range p.Catalog.All() {
		if e.Err != nil || e.Pipeline == nil || e.Pipeline.Spec.Interval == nil || e.Pipeline.Spec.Interval.Duration <= 0 {
			continue
		}
		source := p.sources.keyOf(e, p.PipelinesDir)
		last := p.sources.lastPoll(source, now)
		late := now.Sub(last) > unpolledIntervals*e.Pipeline.Spec.Interval.Duration+unpolledGrace
		if late {
			out.Pipelines = append(out.Pipelines, e.Key)
		}
		seen[source] = seen[source] || late
	}
	out.Polled = len(seen)
	for _, late := range seen {
		if late {
			out.Sources++
		}
	}
	slices.Sort(out.Pipelines)
	return out
}

// Most reports whether at least half of all sources are not polled: then it is the daemon that is at fault, not one
// source.
func (u Unpolled) Most() bool { return u.Sources > 0 && 2*u.Sources >= u.Polled }
