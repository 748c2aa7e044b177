// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/run"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
)

// followTimeout bounds the reading of the pipelines as they were when a job was planned.
const followTimeout = 2 * time.Minute

// jobRunner does jobs.
type jobRunner struct {
	catalog  *catalog.Catalog
	remover  *prune.Remover
	removed  func() // counts removals
	runner   *run.Runner
	watchdog *watchdog.Watchdog
}

// runJobs does jobs and previews pull requests until ctx is done.
func runJobs(ctx context.Context, group *errgroup.Group, p *components) {
	jobs := &jobRunner{
		catalog: p.catalog, remover: p.remover, removed: p.metrics.Removed, runner: p.runner, watchdog: p.watchdog,
	}
	group.Go(func() error { return p.queue.Work(ctx, p.config.InFlight, jobs.handleJob) })
	if p.config.Previews.AtOnce > 0 {
		group.Go(func() error { p.preview.Run(ctx); return nil })
	}
}

// handleJob does one job with the pipelines as they were when it was planned, or as they are now.
func (j *jobRunner) handleJob(ctx context.Context, job queue.Job) error {
	if err := j.followOthers(ctx, job.Pipeline); err != nil {
		return &queue.RetryError{After: 5 * time.Second, Err: err}
	}
	if _, ok := j.catalog.Get(job.Pipeline); !ok {
		removed, err := j.remover.Remove(ctx, job)
		if removed != nil {
			j.removed()
		}
		if removed != nil || err != nil {
			return err
		}
	}
	return j.runner.Do(ctx, job)
}

// followOthers reads the pipelines as the process has that planned a job. Where that hangs it is for the jobs of this pipeline alone: those
// of others may be in another repository.
func (j *jobRunner) followOthers(ctx context.Context, pipeline string) error {
	step := watchdog.Step{Name: watchdog.StepCatalog, Subject: pipeline, Limit: followTimeout}
	_, err := watchdog.Run(ctx, j.watchdog, step, func(ctx context.Context) (struct{}, error) { return struct{}{}, j.catalog.Follow(ctx, pipeline) })
	return err
}

// workerWatch tracks whether any process accepts jobs, here or elsewhere. It is safe for concurrent use.
type workerWatch struct {
	queue *queue.Queue
	grace time.Duration // how long workers may be missing
	log   *slog.Logger

	mu      sync.Mutex
	seen    time.Time       // when a process last did, or the watch began
	absent  bool            // for so long that it is no accident
	waiting map[string]bool // pipelines with a job, while no process does
}

// workersEvery is how often it is looked for workers.
const workersEvery = 5 * time.Second

// errNoWorkers is why the daemon is not ready without workers.
var errNoWorkers = errors.New("no worker takes jobs: workers is 0 here and no prerig daemon worker is connected, or they have ended")

// newWorkerWatch returns a watch of the workers of a queue. The loss of one is noticed only after ackWait, and its
// successor needs some time to start.
func newWorkerWatch(q *queue.Queue, ackWait time.Duration, log *slog.Logger) *workerWatch {
	return &workerWatch{queue: q, grace: cmp.Or(2*ackWait, 30*time.Second), log: log}
}

// watchWorkers checks for workers until ctx is done. A queue that does not answer leaves the result unchanged.
func (w *workerWatch) watchWorkers(ctx context.Context) {
	w.recordWorkerPresence(time.Now(), true, nil)
	runAtInterval(ctx, min(workersEvery, w.grace/3), func() {
		found, err := w.queue.HasWorkers(ctx)
		var waiting map[string]bool
		if err == nil && !found {
			waiting, err = w.queue.Pending(ctx)
		}
		if err == nil && w.recordWorkerPresence(time.Now(), found, waiting) {
			w.log.Error("pipelines wait", "error", errNoWorkers, "jobs", len(waiting))
		}
	})
}

// recordWorkerPresence records whether workers exist now, and reports whether it has just become certain that none do.
func (w *workerWatch) recordWorkerPresence(now time.Time, found bool, waiting map[string]bool) (lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if found {
		w.seen, w.absent, w.waiting = now, false, nil
		return false
	}
	absent := now.Sub(w.seen) > w.grace
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

// isWaiting reports whether a pipeline has a job that no worker accepts.
func (w *workerWatch) isWaiting(pipeline string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting[pipeline]
}
