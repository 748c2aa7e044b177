// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
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
	// Now is the clock; nil is that of the system.
	Now func() time.Time
	Log *slog.Logger

	once sync.Once
	wake chan struct{}

	mu    sync.Mutex
	tries map[string]retry
	seen  map[string]string // signatures of units when they were looked at last
}

// retry is when something that failed is tried again.
type retry struct {
	failures int
	after    time.Time
	named    time.Time // the host does not want to be asked before; zero if it did not specify a time
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
	for _, r := range p.Store.Rollbacks() {
		ended := r.Ended()
		if ended && p.now().Sub(r.At) > keepRollbacks {
			_ = p.Store.ForgetRollback(ctx, r.ID) // a leftover only occupies space
		}
		if ended && !p.leavesStaleHold(r) || !p.isDue("rollback "+r.ID) {
			continue
		}
		err := p.finishRollback(ctx, r.ID)
		if err != nil && ctx.Err() == nil {
			p.Log.Warn("a rollback is tried again", "commit", r.Commit, "target", r.Target, "error", err)
		}
		p.recordAttempt("rollback "+r.ID, err)
	}
}
