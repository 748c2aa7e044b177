// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/publish"
)

// Promoter decides and does, again and again. It is safe for concurrent use.
type Promoter struct {
	Catalog *catalog.Catalog
	Store   *status.Store
	Queue   *queue.Queue
	Targets *publish.Targets
	// Consider has pipelines look at what became of what waits of them.
	Consider func(ctx context.Context, pipelines []string, reason string) error
	// Clusters returns a check for each cluster that the daemon compares with what entries publish: whether its pods have
	// followed what was merged before since. Nil compares none.
	Clusters func(entries []v1alpha1.Publish, since time.Time) []pullrequest.Check
	// Now is the clock; nil is that of the system.
	Now func() time.Time
	Log *slog.Logger

	once sync.Once
	wake chan struct{}

	retries retries
}

func (p *Promoter) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}

func (p *Promoter) wakeChannel() chan struct{} {
	p.once.Do(func() { p.wake = make(chan struct{}, 1) })
	return p.wake
}

// Wake has it look at once.
func (p *Promoter) Wake() {
	select {
	case p.wakeChannel() <- struct{}{}:
	default:
	}
}

// lookEvery is how often it looks whether anything is due. Hosts are asked less often.
const lookEvery = 2 * time.Second

// Run decides and does until ctx is done.
func (p *Promoter) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		p.FinishRollbacks(ctx)
		p.Look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-p.wakeChannel():
		}
	}
}

// FinishRollbacks continues rollbacks that were interrupted or wait.
func (p *Promoter) FinishRollbacks(ctx context.Context) {
	work := p.rollbacks()
	for _, r := range p.Store.Rollbacks() {
		ended, what := r.Ended(), "rollback "+r.ID
		if ended && p.now().Sub(r.At) > keepRollbacks {
			_ = p.Store.ForgetRollback(ctx, r.ID) // a leftover only occupies space
		}
		if ended && !work.leavesStaleHold(r) || !p.retries.isDue(what, p.now()) {
			continue
		}
		err := work.finish(ctx, r.ID)
		if err != nil && ctx.Err() == nil {
			p.Log.Warn("a rollback is tried again", "commit", r.Commit, "target", r.Target, "error", err)
		}
		p.retries.record(what, p.now(), err)
	}
}
