// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
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
	found, err := watchdog.Run(ctx, a.r.Watchdog, a.newWatchdogStep(watchdog.StepFetch, fetchTimeout), a.findSource)
	a.snapshot, a.resolved = found.snapshot, found.resolved
	return err
}

// foundSource is the source of a run, and when it was looked up.
type foundSource struct {
	snapshot *source.Snapshot
	resolved time.Time
}

// findSource fetches the source as it was planned, or as it is now.
func (a *attempt) findSource(ctx context.Context) (found foundSource, err error) {
	sources := a.entry.Sources(a.r.PipelinesDir)
	planned := plannedRevisions(a.job)
	// Two polls of a server may overlap, and clocks differ: only the absence of a render since the planner began to
	// poll proves that its revision is no older than the last rendered one.
	if planned.Complete(sources) && a.isThereStill(sources, planned) && a.job.Rendered.Equal(a.state.Seen.Resolved) {
		found.snapshot, err = source.FetchAll(ctx, a.r.sources, a.entry.Scope(), sources, planned)
		found.resolved = a.job.Resolved
		if err == nil || ctx.Err() != nil {
			return found, err
		}
		// A server need not serve commits that a branch was forced away from, or a registry those that a tag has
		// left. Then all sources are polled again: a result never has revisions of two polls.
		a.log.Debug("what was planned cannot be fetched, looking for what is there now", "revision", a.job.Revision, "error", err)
	}
	if found.snapshot, err = source.FetchAll(ctx, a.r.sources, a.entry.Scope(), sources, nil); err != nil {
		return foundSource{}, err
	}
	found.resolved = found.snapshot.Resolved
	return found, nil
}

// isThereStill reports whether the sources were recently at the planned revisions, according to the planner's poll
// or one for another job of the same sources: an upgrade of thousands of applications lasts longer than a poll is
// trusted. Revisions that a later poll has contradicted are never trusted: the planner may be another process, which
// does not know about that poll.
func (a *attempt) isThereStill(sources []v1alpha1.NamedSource, planned source.Revisions) bool {
	if a.r.sources.HasMoved(a.entry.Scope(), sources, planned, a.job.Resolved) {
		return false
	}
	return time.Since(a.job.Resolved).Abs() < resolvedFor || a.r.sources.Seen(a.entry.Scope(), sources, planned, resolvedFor)
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
	newest, err := watchdog.Run(ctx, a.r.Watchdog, a.newWatchdogStep(watchdog.StepFetch, fetchTimeout), a.isNewest)
	if err == nil && newest {
		return nil
	}
	return &queue.RetryError{After: time.Second, Err: errors.Join(errMoved, err)}
}

// isNewest reports whether all sources are where the run has found them.
func (a *attempt) isNewest(ctx context.Context) (bool, error) {
	digests := []string{a.snapshot.Digest}
	for _, one := range a.snapshot.Mounted {
		digests = append(digests, one.Snapshot.Digest)
	}
	for i, one := range a.entry.Sources(a.r.PipelinesDir) {
		now, err := a.newestRevision(ctx, one.Source)
		if err != nil || !strings.HasSuffix(now, digests[i]) {
			return false, err
		}
	}
	return true, nil
}

// newestRevision looks where a source is now.
func (a *attempt) newestRevision(ctx context.Context, src v1alpha1.Source) (string, error) {
	now, _, err := a.r.sources.Newest(ctx, a.entry.Scope(), src)
	if err != nil || now != "" {
		return now, err
	}
	snapshot, err := a.r.Fetcher.Fetch(ctx, a.entry.Scope(), src, "")
	if err != nil {
		return "", err
	}
	return snapshot.Digest, nil
}
