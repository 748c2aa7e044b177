// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"maps"
	"slices"
	"sync"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/event"
)

// Pipelines are the entries that a catalog has read, with an index of what they watch. It is safe for concurrent use.
type Pipelines struct {
	mu      sync.RWMutex
	entries map[string]Entry
	keys    []string
	index   *changeIndex
}

func (p *Pipelines) currentIndex() *changeIndex {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.index
}

// Get returns one entry.
func (p *Pipelines) Get(key string) (Entry, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	e, ok := p.entries[key]
	return e, ok
}

// GetAll returns the entries of keys, in their order, and the keys without one.
func (p *Pipelines) GetAll(keys []string) (found []Entry, gone []string) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	found = make([]Entry, 0, len(keys))
	for _, key := range keys {
		if e, ok := p.entries[key]; ok {
			found = append(found, e)
		} else {
			gone = append(gone, key)
		}
	}
	return found, gone
}

// All returns every entry, sorted by key.
func (p *Pipelines) All() []Entry {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := make([]Entry, 0, len(p.keys))
	for _, key := range p.keys {
		out = append(out, p.entries[key])
	}
	return out
}

// Match returns the keys of the pipelines that the changes could touch, sorted. The caller must not change them.
func (p *Pipelines) Match(changes []event.Change) []string {
	return p.currentIndex().matchChanges(changes)
}

// MatchProposed returns the keys of the pipelines whose pull requests go to, or are from, a branch that has moved or was deleted, and of
// those whose pull request was closed, merged or opened again, sorted.
func (p *Pipelines) MatchProposed(changes []event.Change) []string {
	x := p.currentIndex()
	found := map[string]bool{}
	for _, change := range changes {
		x.matchProposed(change, func(key string) { found[key] = true })
	}
	return slices.Sorted(maps.Keys(found))
}

// MatchPull returns the keys of the pipelines that preview pull requests to a repository, sorted.
func (p *Pipelines) MatchPull(pull *event.PullChange) []string {
	x := p.currentIndex()
	found := map[string]bool{}
	x.matchPull(event.Change{Pull: pull}, func(key string) { found[key] = true })
	return slices.Sorted(maps.Keys(found))
}

// Overlapping calls f for the places of other pipelines that can have files in common with an entry of spec.publish of one.
func (p *Pipelines) Overlapping(pipeline string, to v1alpha1.Publish, f func(other string, at v1alpha1.Publish)) {
	for _, e := range p.All() {
		if e.Pipeline == nil || e.Key == pipeline {
			continue
		}
		for _, at := range e.Pipeline.Spec.Publish {
			if to.Overlaps(at) {
				f(e.Key, at)
			}
		}
	}
}

// Successors returns the pipelines that publish to places of a removed pipeline: it may have been renamed.
func (p *Pipelines) Successors(pipeline string, places []v1alpha1.Publish) []string {
	var out []string
	for _, to := range places {
		p.Overlapping(pipeline, to, func(other string, _ v1alpha1.Publish) { out = append(out, other) })
	}
	slices.Sort(out)
	return slices.Compact(out)
}
