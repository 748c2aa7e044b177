// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"sync"
	"time"
)

// workerWatch tracks whether any process takes jobs, here or elsewhere. It is safe for concurrent use.
type workerWatch struct {
	mu      sync.Mutex
	seen    time.Time       // when a process last did, or the watch began
	absent  bool            // for so long that it is no accident
	waiting map[string]bool // pipelines with a job, while no process does
}

// workersEvery is how often it is looked for workers.
const workersEvery = 5 * time.Second

// errNoWorkers is why the daemon is not ready without workers.
var errNoWorkers = errors.New("no worker takes jobs: workers is 0 here and no prerig worker is connected, or they have ended")

// watchWorkers checks for workers until ctx is done. A queue that does not answer leaves the result unchanged.
func (p *components) watchWorkers(ctx context.Context) {
	p.workers.recordWorkerPresence(time.Now(), true, 0, nil)
	runAtInterval(ctx, min(workersEvery, p.workersGrace()/3), func() {
		found, err := p.queue.HasWorkers(ctx)
		var waiting map[string]bool
		if err == nil && !found {
			waiting, err = p.queue.Pending(ctx)
		}
		if err == nil && p.workers.recordWorkerPresence(time.Now(), found, p.workersGrace(), waiting) {
			p.o.Log.Error("pipelines wait", "error", errNoWorkers, "jobs", len(waiting))
		}
	})
}

// workersGrace returns how long workers may be missing: the loss of one is noticed only after AckWait, and its
// successor takes some time.
func (p *components) workersGrace() time.Duration {
	if p.c.NATS.AckWait == 0 {
		return 30 * time.Second
	}
	return 2 * p.c.NATS.AckWait
}

// recordWorkerPresence records whether workers exist now, and reports whether it has just become certain that none do.
func (w *workerWatch) recordWorkerPresence(now time.Time, found bool, grace time.Duration, waiting map[string]bool) (lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if found {
		w.seen, w.absent, w.waiting = now, false, nil
		return false
	}
	absent := now.Sub(w.seen) > grace
	lost = absent && !w.absent
	w.absent = absent
	if absent {
		w.waiting = waiting
	}
	return lost
}

// missingWorkersProblem returns the reason jobs are not rendered, or nil if workers exist.
func (w *workerWatch) missingWorkersProblem() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.absent {
		return errNoWorkers
	}
	return nil
}

// isWaiting reports whether a pipeline has a job that no worker takes.
func (w *workerWatch) isWaiting(pipeline string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting[pipeline]
}
