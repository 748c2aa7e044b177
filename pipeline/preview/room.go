// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"

	"github.com/prerig/prerig/pipeline/source"
)

// makeRoom drops what was fetched first where too much is kept: whoever may open pull requests decides how much there is to fetch. It does
// so when nothing is under way in this process, as that would miss it, and nothing begins until then.
func (p *Previewer) makeRoom(ctx context.Context) {
	p.mu.Lock()
	grown := p.grown
	p.mu.Unlock()
	if p.MaxKept <= 0 || !grown {
		return
	}
	over := p.tooLarge()
	p.mu.Lock()
	p.full = len(over) > 0
	busy := len(p.running) > 0
	p.grown = p.full
	p.mu.Unlock()
	if len(over) == 0 || busy {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	for _, kept := range over {
		before := kept.Size()
		if err := kept.Trim(ctx, p.MaxKept); err != nil {
			p.Log.Warn("not all of what pull requests have left behind was removed", "error", err)
		}
		p.Log.Info("made room for what pull requests bring", "before", before, "after", kept.Size(), "bound", p.MaxKept)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full, p.grown = false, false
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
