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
func (p *Planner) recordPollEnd(source string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.polled == nil {
		p.polled = map[string]time.Time{}
	}
	p.polled[source] = time.Now()
}

// Unpolled returns the sources that should have been polled by now but were not, whatever the reason: a poll hangs,
// or the timer does. A source that does not answer counts as polled, and one that keeps failing as well until its
// next poll is due; the status of its pipelines reports it. Before
// Timer runs the result is empty. The times are of a monotonic clock.
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
		source := p.sourceKey(e)
		p.mu.Lock()
		first, known := p.expected[source]
		if !known {
			if p.expected == nil {
				p.expected = map[string]time.Time{}
			}
			first = now
			p.expected[source] = now
		}
		last := p.polled[source]
		if rest := p.rests[source]; rest.until.After(last) {
			last = rest.until
		}
		p.mu.Unlock()
		if last.Before(first) {
			last = first
		}
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
