// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/source"
)

// fetchTimeout bounds a fetch.
const fetchTimeout = 2 * time.Minute

// resolvedFor is how long a revision is trusted after the planner found it, or this process has seen it since.
// Later the source is polled again, so that the newest revision is rendered.
const resolvedFor = 20 * time.Second

func (a *attempt) fetchSource(ctx context.Context) (err error) {
	ctx, span := otel.Tracer("prerig").Start(ctx, "fetch")
	defer span.End()
	start := time.Now()
	defer func() { a.measured.Fetch = time.Since(start) }()
	step := watchdog.Step{Name: watchdog.StepFetch, Subject: a.entry.Key, Limit: fetchTimeout}
	found, err := watchdog.Run(ctx, a.r.Watchdog, step, func(ctx context.Context) (foundSource, error) {
		return a.newSourceFinder().find(ctx, a.job, a.state.Seen.Resolved)
	})
	a.snapshot, a.resolved = found.snapshot, found.resolved
	return err
}

func (a *attempt) newSourceFinder() sourceFinder {
	return sourceFinder{shared: a.r.sources, fetcher: a.r.Fetcher, scope: a.entry.Scope(), sources: a.entry.Sources(a.r.PipelinesDir), log: a.log}
}

// sourceFinder finds the sources of a pipeline.
type sourceFinder struct {
	shared  *source.Shared
	fetcher *source.Fetcher
	scope   source.Scope
	sources []v1alpha1.NamedSource
	log     *slog.Logger
}

// foundSource is the source of a run, and when it was looked up.
type foundSource struct {
	snapshot *source.Snapshot
	resolved time.Time
}

// find fetches the source as it was planned, or as it is now. rendered is when those of the last render were looked up.
func (f sourceFinder) find(ctx context.Context, job queue.Job, rendered time.Time) (found foundSource, err error) {
	planned := plannedRevisions(job)
	// Two polls of a server may overlap, and clocks differ: only the absence of a render since the planner began to
	// poll proves that its revision is no older than the last rendered one.
	if planned.Complete(f.sources) && f.isThereStill(planned, job.Resolved) && job.Rendered.Equal(rendered) {
		found.snapshot, err = source.FetchAll(ctx, f.shared, f.scope, f.sources, planned)
		found.resolved = job.Resolved
		if err == nil || ctx.Err() != nil {
			return found, err
		}
		// A server need not serve commits that a branch was forced away from, or a registry those that a tag has
		// left. Then all sources are polled again: a result never has revisions of two polls.
		f.log.Debug("what was planned cannot be fetched, looking for what is there now", "revision", job.Revision, "error", err)
	}
	if found.snapshot, err = source.FetchAll(ctx, f.shared, f.scope, f.sources, nil); err != nil {
		return foundSource{}, err
	}
	found.resolved = found.snapshot.Resolved
	return found, nil
}

// isThereStill reports whether the sources were recently at the planned revisions, according to the planner's poll
// or one for another job of the same sources: an upgrade of thousands of applications lasts longer than a poll is
// trusted. Revisions that a later poll has contradicted are never trusted: the planner may be another process, which
// does not know about that poll.
func (f sourceFinder) isThereStill(planned source.Revisions, resolved time.Time) bool {
	if f.shared.HasMoved(f.scope, f.sources, planned, resolved) {
		return false
	}
	return time.Since(resolved).Abs() < resolvedFor || f.shared.Seen(f.scope, f.sources, planned, resolvedFor)
}

// plannedRevisions returns the revisions that a job names; none without that of spec.source.
func plannedRevisions(job queue.Job) source.Revisions {
	if job.Revision == "" {
		return nil
	}
	planned := source.Revisions{"": job.Revision}
	maps.Copy(planned, job.Mounted)
	return planned
}

// errMoved is about a source that has moved on.
var errMoved = errors.New("the source has moved during the run")

// repollSource polls the source once more at the end of retries: the planner requests no run of a pipeline that is
// being retried while its source does not answer, so that an event may have arrived without a run. The job is then
// redelivered.
func (a *attempt) repollSource(ctx context.Context) error {
	step := watchdog.Step{Name: watchdog.StepFetch, Subject: a.entry.Key, Limit: fetchTimeout}
	newest, err := watchdog.Run(ctx, a.r.Watchdog, step, func(ctx context.Context) (bool, error) {
		return a.newSourceFinder().isNewest(ctx, a.snapshot)
	})
	if err == nil && newest {
		return nil
	}
	return &queue.RetryError{After: time.Second, Err: errors.Join(errMoved, err)}
}

// isNewest reports whether all sources are where a snapshot has found them.
func (f sourceFinder) isNewest(ctx context.Context, snapshot *source.Snapshot) (bool, error) {
	digests := []string{snapshot.Digest}
	for _, one := range snapshot.Mounted {
		digests = append(digests, one.Snapshot.Digest)
	}
	for i, one := range f.sources {
		now, err := f.newestRevision(ctx, one.Source)
		if err != nil || !strings.HasSuffix(now, digests[i]) {
			return false, err
		}
	}
	return true, nil
}

// newestRevision looks where a source is now.
func (f sourceFinder) newestRevision(ctx context.Context, src v1alpha1.Source) (string, error) {
	now, _, err := f.shared.Newest(ctx, f.scope, src)
	if err != nil || now != "" {
		return now, err
	}
	snapshot, err := f.fetcher.Fetch(ctx, f.scope, src, "")
	if err != nil {
		return "", err
	}
	return snapshot.Digest, nil
}
