// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"

	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/source"
)

// settledSource is the result of the last poll of a source. As long as its pipelines are unchanged, the next poll
// only examines those whose stored state changed since, or for which the source differs in the parts they read: an
// event that affects one of ten thousand pipelines, or none, does not examine all of them.
type settledSource struct {
	entries  []catalog.Entry
	stored   uint64 // up to where it is known what is stored of them, see status.Store.ChangedSince
	unneeded *build.Unneeded
	open     map[string]bool // pipelines that every poll examines: those that needed a run, or whose reason for needing none is unknown
}

// lastSettled returns the result of the last poll of a source if it is usable; otherwise nil.
func (t *sourceTable) lastSettled(key string, entries []catalog.Entry, cause Cause) *settledSource {
	t.mu.Lock()
	s := t.of(key).settled
	t.mu.Unlock()
	if s == nil || cause.Drift || !slices.EqualFunc(s.entries, entries, isSameEntry) {
		return nil
	}
	return s
}

// setSettled records the result of a poll; nil if it cannot be relied on.
func (t *sourceTable) setSettled(key string, s *settledSource) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(key).settled = s
}

// unsettled are the pipelines that a look has to go through.
type unsettled struct {
	entries []catalog.Entry
	keys    map[string]bool // of them
	stored  uint64          // up to where it is known what is stored of all others
}

// pipelinesToExamine returns the pipelines to examine in a snapshot, or false if all must be examined. A pipeline with
// a job is one of them: its run may have polled the source too early. The caller has the source's turn.
func (s *settledSource) pipelinesToExamine(p *Planner, snapshot *source.Snapshot, pending map[string]bool) (u unsettled, ok bool) {
	if s == nil || snapshot == nil {
		return u, false
	}
	changed, stored, ok := p.Store.ChangedSince(s.stored)
	if !ok {
		return u, false
	}
	touched, ok := s.unneeded.Touched(p.Builder, snapshot)
	if !ok {
		return u, false
	}
	u = unsettled{keys: changed, stored: stored}
	for _, key := range touched {
		u.keys[key] = true
	}
	maps.Copy(u.keys, s.open)
	maps.Copy(u.keys, pending)
	for _, e := range s.entries {
		if u.keys[e.Key] {
			u.entries = append(u.entries, e)
		}
	}
	return u, true
}

// statesBefore returns the states of pipelines as of the stored revision, for their record of the last render, see
// queue.Job; nil for one that has changed since.
func statesBefore(store *status.Store, entries []catalog.Entry, stored uint64) []*status.State {
	out := statesOf(store, entries)
	changed, _, ok := store.ChangedSince(stored)
	for i, e := range entries {
		if !ok || changed[e.Key] {
			out[i] = nil
		}
	}
	return out
}

// recordPartialCheck notes what a look has found that went through some pipelines only. The caller has the source's
// turn.
func (s *settledSource) recordPartialCheck(look *build.UnchangedCheck, gone unsettled, open map[string]bool) {
	s.unneeded.Renew(look, gone.keys)
	s.stored, s.open = gone.stored, open
}

func isSameEntry(a, b catalog.Entry) bool {
	return a.Key == b.Key && a.Digest == b.Digest && a.File == b.File
}
