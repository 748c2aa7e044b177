// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"

	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/internal/process/disk"
	"github.com/prerig/prerig/pipeline/server"
)

// registerPolledMetrics has everything measured that is not counted where it happens.
func registerPolledMetrics(p *components, planned *planning, workers *workerWatch, s *server.Server) {
	p.metrics.Queue(func(ctx context.Context) (queue.Depth, error) {
		return p.queue.Depth(ctx, func(pipeline string) (string, bool) { return p.store.Get(pipeline).RetryCause() })
	}, p.queue.Writable)
	p.metrics.Disk(p.config.State)
	p.metrics.Workers(func() bool { return workers.missingWorkersProblem() == nil })
	p.metrics.Unpolled(func() int { return planned.planner.Unpolled().Sources })
	p.metrics.Removals(planned.keeper.Removals)
	p.metrics.Catalog(p.catalog.Statuses)
	p.metrics.Pipelines(s.Measure, server.States(), p.config.Metrics.Pipelines)
}

// readinessProblem returns the reason storing, polling or rendering fails now, or nil if all work: with an external
// NATS the state directory still holds the mirrors.
func readinessProblem(state string, q *queue.Queue, workers *workerWatch, planner *plan.Planner) error {
	if space, err := disk.Of(state); err == nil {
		if err := space.Problem(); err != nil {
			return err
		}
	}
	if err := q.Ready(); err != nil {
		return err
	}
	if err := workers.missingWorkersProblem(); err != nil {
		return err
	}
	// A few sources that are not polled do not affect the others, which are still served; the metrics report them.
	if late := planner.Unpolled(); late.Most() {
		return fmt.Errorf("%d of %d sources are no longer polled; the log has what hangs", late.Sources, late.Polled)
	}
	return nil
}
