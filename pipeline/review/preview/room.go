// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"strings"

	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/source"
)

// makeRoom drops the oldest fetched data if too much is kept: anyone who may open pull requests determines how much
// is fetched. It does so when no preview is under way in this process, as that would miss the data, and none begins
// until then.
func (p *Previewer) makeRoom(ctx context.Context) {
	if p.MaxKept <= 0 || !p.consumeGrowthFlag() {
		return
	}
	over := p.tooLarge()
	if busy := p.recordStorageFull(len(over) > 0); len(over) == 0 || busy {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	for _, kept := range over {
		before := kept.Size()
		if err := kept.Trim(ctx, p.MaxKept); err != nil {
			p.Log.Warn("not all of what pull requests have left behind was removed", "error", err)
		}
		after := kept.Size()
		if after > p.MaxKept {
			p.Log.Warn("what pull requests have left behind takes more room than it may", "before", before, "after",
				after, "bound", p.MaxKept)
			continue
		}
		p.Log.Info("made room for what pull requests bring", "before", before, "after", after, "bound", p.MaxKept)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full, p.grown = false, false
}

// consumeGrowthFlag reports whether something may have been fetched since it was last asked. What is fetched from now
// on is for the next time.
func (p *Previewer) consumeGrowthFlag() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	grown := p.grown
	p.grown = false
	return grown
}

// recordStorageFull notes whether too much is kept, and reports whether anything is under way.
func (p *Previewer) recordStorageFull(full bool) (busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = full
	p.grown = p.grown || full
	return len(p.running) > 0
}

// tooLarge returns what keeps more than it may. What pipelines read is not among it.
func (p *Previewer) tooLarge() (out []*source.Fetcher) {
	for _, kept := range []*source.Fetcher{p.Heads, p.Forks.Fetcher} {
		if kept != nil && kept.Size() > p.MaxKept {
			out = append(out, kept)
		}
	}
	return out
}

// dropFork makes room for a pull request among the known ones of its repository: it drops the fork's pull request
// that was previewed longest ago, because anyone who opens many must not keep those of the repository itself from
// being previewed. It reports whether room is available now. Comments and statuses of the dropped pull request stay,
// and an event about it brings it back.
func (p *Previewer) dropFork(ctx context.Context, fresh *status.Preview) bool {
	group := status.PreviewGroup(fresh.Namespace, fresh.Repository)
	var oldest *status.Preview
	for _, key := range p.Store.Previews() {
		if !strings.HasPrefix(key, group) || p.isRunning(key) {
			continue
		}
		one := p.Store.Preview(key)
		if one != nil && one.Fork && (oldest == nil || one.Ended.Before(oldest.Ended)) {
			oldest = one
		}
	}
	if oldest == nil {
		return false
	}
	dropped := false
	err := p.Store.ChangePreview(ctx, oldest.Key(), func(now *status.Preview) *status.Preview {
		if dropped = now == nil || now.Fork; dropped {
			return nil
		}
		return now
	})
	if err != nil {
		p.Log.Warn("no room was made for a pull request", "preview", fresh.Key(), "error", err)
		return false
	}
	if dropped {
		p.Log.Info("a pull request of a fork is forgotten, as too many are open", "preview", oldest.Key(), "open",
			maxKept)
	}
	return dropped
}

func (p *Previewer) isRunning(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[key] != nil
}
