// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/source"
)

// fetchSafely looks at the sources of a pipeline and leaves a look behind that hangs: what follows from the answers of
// other sources, and the other looks at this one, do not wait for it.
func (p *Planner) fetchSafely(ctx context.Context, key string, e catalog.Entry) (*source.Snapshot, error) {
	step := watchdog.Step{Name: watchdog.StepFetch, Subject: "source of " + e.Key, Limit: fetchTimeout}
	began := time.Now()
	snapshot, err := watchdog.Run(ctx, p.Watchdog, step, func(ctx context.Context) (*source.Snapshot, error) {
		return p.fetchSources(ctx, e)
	})
	if !errors.Is(err, watchdog.ErrOverdue) {
		p.sources.recordPollEnd(key)
	}
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		p.sources.notePollResult(key, err != nil, time.Since(began))
	}
	return snapshot, err
}

// fetchSources looks at the sources of a pipeline. Those of a pipeline with several are asked for once for all pipelines that look
// at the same time, as each combination of sources is looked at on its own.
func (p *Planner) fetchSources(ctx context.Context, e catalog.Entry) (*source.Snapshot, error) {
	sources := e.Sources(p.PipelinesDir)
	if len(sources) == 1 {
		return p.Fetcher.Fetch(ctx, e.Scope(), sources[0].Source, "")
	}
	p.shareLooks.Do(func() { p.shared = source.Share(p.Fetcher) })
	return source.FetchAll(ctx, p.shared, e.Scope(), sources, nil)
}

// mountedRevisions returns the revisions of the further sources of a snapshot by their mount paths, or nil if it
// has none.
func mountedRevisions(snapshot *source.Snapshot) map[string]string {
	var out map[string]string
	for _, one := range snapshot.Mounted {
		if out == nil {
			out = map[string]string{}
		}
		out[one.MountPath] = one.Snapshot.Revision
	}
	return out
}
