// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"sync"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// begunJobs are the pipelines with jobs that are not done, as one plan comes to know of them.
type begunJobs struct {
	p      *Planner
	before map[string]bool // when the plan began

	mu  sync.Mutex
	err error // why the queue could not be asked
}

// findBegun asks for the jobs that are not done as a plan begins.
func (p *Planner) findBegun(ctx context.Context) (*begunJobs, error) {
	// In this order: a run that ended before Pending was asked has saved its state, and Sync waits for it. A run that has
	// not ended counts as a need, as it may have looked at the source too early.
	before, err := p.Queue.Pending(ctx)
	if err != nil {
		return nil, err
	}
	return &begunJobs{p: p, before: before}, p.Store.Sync(ctx)
}

// pendingJobsAmong returns those of the pipelines whose source was polled just now. Another plan may have requested
// runs since this one began, and have found an older revision than this poll: the stored state does not reflect that
// yet. A later plan finds this poll recorded.
func (b *begunJobs) pendingJobsAmong(ctx context.Context, entries []catalog.Entry) (pending map[string]bool, ok bool) {
	keys := make([]string, len(entries))
	for i, e := range entries {
		keys[i] = e.Key
	}
	now, err := b.p.Queue.PendingOf(ctx, keys)
	if err == nil {
		err = b.p.Store.Sync(ctx)
	}
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.err = errors.Join(b.err, err)
		return nil, false
	}
	pending = map[string]bool{}
	for _, key := range keys {
		if b.before[key] || now[key] {
			pending[key] = true
		}
	}
	return pending, true
}

// queueError returns why the queue could not be asked, nil where it could.
func (b *begunJobs) queueError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// requestRun asks for a run. No look is noted between the last check of the job's revision and the moment that the job
// can be seen by who asks for what is pending.
func (p *Planner) requestRun(ctx context.Context, job queue.Job) error {
	p.requesting.RLock()
	defer p.requesting.RUnlock()
	p.dropOldRevision(&job)
	return p.Queue.Request(ctx, job)
}
