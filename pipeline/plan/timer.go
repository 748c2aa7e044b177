// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"time"

	"github.com/prerig/prerig/pipeline/queue"
)

// Timer considers each pipeline once in its interval until ctx is done. The moment within the interval follows from the
// source, so that sources are spread evenly, one look at each serves all of its pipelines, and a restart changes nothing.
func (p *Planner) Timer(ctx context.Context) {
	const tick = time.Second
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if due := p.duePipelines(last, now); len(due) > 0 {
				cause := Cause{ID: fmt.Sprintf("interval-%d", now.Unix()), Reason: "interval", Since: now, Drift: true}
				if err := p.Consider(ctx, due, cause); err != nil && ctx.Err() == nil {
					p.Log.Warn("an interval could not be planned; the next one will be", "error", err)
				}
			}
			last = now
		}
	}
}

// duePipelines returns the pipelines whose moment is after last and not after now.
func (p *Planner) duePipelines(last, now time.Time) []string {
	var out []string
	for _, e := range p.Catalog.All() {
		if e.Pipeline == nil || e.Pipeline.Spec.Interval == nil || e.Pipeline.Spec.Interval.Duration <= 0 {
			continue
		}
		every := e.Pipeline.Spec.Interval.Duration
		shift := time.Duration(queue.Phase(p.sourceKey(e)) * float64(every))
		if intervalAt(last, every, shift) != intervalAt(now, every, shift) {
			out = append(out, e.Key)
		}
	}
	return out
}

func intervalAt(at time.Time, every, shift time.Duration) int64 {
	return (at.UnixNano() - int64(shift)) / int64(every)
}
