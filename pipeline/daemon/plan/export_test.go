// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/source"
)

// Unsettled returns how many pipelines an event about these changes has to go through, whose source is at a snapshot, and of how many.
func (p *Planner) Unsettled(changes []event.Change, snapshot *source.Snapshot) (some, all int) {
	entries := p.runnableEntries(p.Catalog.Match(changes))
	if len(entries) == 0 {
		return 0, 0
	}
	left, ok := p.sources.lastSettled(p.sources.keyOf(entries[0], p.PipelinesDir), entries, Cause{}).pipelinesToExamine(p, snapshot, nil)
	if !ok {
		return len(entries), len(entries)
	}
	return len(left.entries), len(entries)
}

// HasLooked reports whether the source of a pipeline was looked at.
func (p *Planner) HasLooked(pipeline string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, looked := p.looked[pipeline]
	return looked
}

// IsSettled reports whether it is known of the source of a pipeline that nothing is needed.
func (p *Planner) IsSettled(pipeline string) bool {
	e, ok := p.Catalog.Get(pipeline)
	key := p.sources.keyOf(e, p.PipelinesDir)
	p.sources.mu.Lock()
	defer p.sources.mu.Unlock()
	return ok && p.sources.of(key).settled != nil
}

// Sources returns how many sources something is remembered of.
func (p *Planner) Sources() int {
	p.sources.mu.Lock()
	defer p.sources.mu.Unlock()
	p.sources.unresponsive.mu.Lock()
	defer p.sources.unresponsive.mu.Unlock()
	return max(len(p.sources.known), len(p.sources.unresponsive.until))
}

// WaitForTargets sets how long a place that is published to may take to answer.
func (p *Planner) WaitForTargets(d time.Duration) { p.targetWait = d }

// WaitForBatch sets how long the pipelines of sources that have answered wait for those of others.
func (p *Planner) WaitForBatch(d time.Duration) { p.batchWait = d }
