// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// Timer considers each pipeline once per interval until ctx is done. The moment within the interval is derived from
// the source, so that sources are spread evenly, one poll of each serves all of its pipelines, and a restart does
// not change the schedule.
func (p *Planner) Timer(ctx context.Context) {
	const tick = time.Second
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	last := time.Now()
	p.mu.Lock()
	p.timing = last
	p.mu.Unlock()
	var looks sync.WaitGroup // a slow poll does not delay the others
	defer looks.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if due := p.beginInterval(p.duePipelines(last, now), now); len(due) > 0 {
				looks.Go(func() { p.planInterval(ctx, due, now) })
			}
			last = now
		}
	}
}

// planInterval considers pipelines whose interval has begun.
func (p *Planner) planInterval(ctx context.Context, due []string, now time.Time) {
	defer p.endInterval("", now)
	cause := Cause{ID: fmt.Sprintf("interval-%d", now.Unix()), Reason: "interval", Since: now, Drift: true}
	cause.planned = func(source string) { p.endInterval(source, now) }
	if err := p.Consider(ctx, due, cause); err != nil && ctx.Err() == nil {
		p.Log.Warn("an interval could not be planned; the next one will be", "error", err)
	}
}

// beginInterval leaves out pipelines of sources that an earlier interval is still at, and notes that this one is at the others. Those left
// out have their turn with the first tick after that: their next interval could fall into another look, and each one after it. Those of a
// source that rests have it with the next interval.
func (p *Planner) beginInterval(due []string, now time.Time) []string {
	due = slices.Concat(due, p.postponed)
	slices.Sort(due)
	entries, _ := p.Catalog.GetAll(slices.Compact(due))
	began := map[string]bool{}
	var out []string
	p.postponed = nil
	for _, e := range entries {
		if e.Pipeline == nil {
			continue // it cannot be read any more
		}
		source := p.sources.keyOf(e, p.PipelinesDir)
		if p.sources.isResting(source) {
			continue
		}
		p.mu.Lock()
		if _, at := p.intervals[source]; !at {
			if p.intervals == nil {
				p.intervals = map[string]time.Time{}
			}
			p.intervals[source], began[source] = now, true
		}
		p.mu.Unlock()
		if began[source] {
			out = append(out, e.Key)
		} else {
			p.postponed = append(p.postponed, e.Key)
		}
	}
	return out
}

// endInterval notes that an interval is not at a source any more, or at none for "".
func (p *Planner) endInterval(source string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.intervals, func(one string, began time.Time) bool { return began.Equal(now) && (source == "" || one == source) })
}

// duePipelines returns the pipelines whose moment is after last and not after now.
func (p *Planner) duePipelines(last, now time.Time) []string {
	var out []string
	for _, e := range p.Catalog.All() {
		if e.Pipeline == nil || e.Pipeline.Spec.Interval == nil || e.Pipeline.Spec.Interval.Duration <= 0 {
			continue
		}
		every := e.Pipeline.Spec.Interval.Duration
		shift := time.Duration(queue.Phase(p.sources.keyOf(e, p.PipelinesDir)) * float64(every))
		if intervalAt(last, every, shift) != intervalAt(now, every, shift) {
			out = append(out, e.Key)
		}
	}
	return out
}

func intervalAt(at time.Time, every, shift time.Duration) int64 {
	return (at.UnixNano() - int64(shift)) / int64(every)
}
