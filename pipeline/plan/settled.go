// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/catalog"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/status"
)

// settledSource is a source of which nothing was needed at the last look, for none of its pipelines. As long as they are as they were
// and nothing at all was stored since, another look asks only whether the source differs where they have read it: ten thousand
// pipelines are not gone through for an event that touches none of them.
type settledSource struct {
	entries  []catalog.Entry
	stored   uint64 // status.Store.Seen from before their states were read
	unneeded *build.Unneeded
}

// lastSettled returns what the last look at a source has found, where that is true as long as the source does not differ; else nil.
func (p *Planner) lastSettled(key string, entries []catalog.Entry, pending map[string]bool, cause Cause) *settledSource {
	p.mu.Lock()
	s := p.settled[key]
	p.mu.Unlock()
	if s == nil || cause.Drift || len(pending) > 0 || s.stored != p.Store.Seen() || !slices.EqualFunc(s.entries, entries, isSameEntry) {
		return nil
	}
	return s
}

// holds reports whether the finding is true of a snapshot, too. The caller has the source's turn.
func (s *settledSource) holds(p *Planner, snapshot *source.Snapshot) bool {
	return s != nil && s.stored == p.Store.Seen() && s.unneeded.Holds(p.Builder, snapshot)
}

// statesBefore returns the states of pipelines as they were when only so much was stored, for what they say of the last render, see
// queue.Job; nil where more is by now.
func (p *Planner) statesBefore(entries []catalog.Entry, stored uint64) []*status.State {
	out := p.statesOf(entries)
	if p.Store.Seen() != stored {
		return nil
	}
	return out
}

// noteSettled notes what a look has found; nil for nothing to rely on.
func (p *Planner) noteSettled(key string, s *settledSource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s == nil || s.unneeded == nil {
		delete(p.settled, key)
		return
	}
	if p.settled == nil {
		p.settled = map[string]*settledSource{}
	}
	p.settled[key] = s
}

func isSameEntry(a, b catalog.Entry) bool {
	return a.Key == b.Key && a.Digest == b.Digest && a.File == b.File
}
