// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/process/budget"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/notify"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source"
)

// Options of a Runner.
type Options struct {
	// Catalog is the pipelines, PipelinesDir the directory that they are from.
	Catalog      *catalog.Catalog
	PipelinesDir string
	// Fetcher fetches sources, Targets opens the places that are published to. Remover removes output from places
	// where a pipeline no longer publishes.
	Fetcher *source.Fetcher
	Targets *publish.Targets
	Remover *prune.Remover
	// Builder renders.
	Builder *build.Builder
	// Store keeps states, Queue locks.
	Store *status.Store
	Queue *queue.Queue
	// Notifier sends notifications; nil sends none.
	Notifier *notify.Notifier
	// Workers is how many renders run at once, beside half as many that take long.
	Workers int
	// Teams distributes the renders.
	Teams build.Teams
	// History is how many runs are kept.
	History int
	// ExternalURL is where the web page is, for notifications.
	ExternalURL string
	// Observe is called for every run; it must be quick.
	Observe func(Observation)
	// ReadCluster triggers another read of the cluster's inputs to policies, and does not wait for it; nil without
	// a cluster.
	ReadCluster func()
	// Watchdog abandons hanging steps; with nil they are abandoned, too, but not reported.
	Watchdog *watchdog.Watchdog
	// Log.
	Log *slog.Logger
}

// Observation holds the measurements of a run.
type Observation struct {
	Pipeline string
	Run      status.Run
	Stage    string
	// Queued is how long the event or request waited; Fetch, Render and Publish are the durations of the steps. Bytes is the
	// size of the result.
	Queued, Fetch, Render, Publish time.Duration
	Bytes                          int
}

// Runner does jobs. It is safe for concurrent use.
type Runner struct {
	Options
	builds  *build.Limited
	sources *source.Shared
	notices notices

	differences *differences
}

// New returns a Runner.
func New(o Options) *Runner {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = func(Observation) {}
	}
	r := &Runner{
		Options:     o,
		builds:      build.Limit(build.Watch(o.Builder, o.Watchdog), o.Workers, o.Teams, o.Log),
		sources:     source.Share(o.Fetcher),
		differences: &differences{turns: make(chan struct{}, runtime.GOMAXPROCS(0)), store: o.Store, watchdog: o.Watchdog},
	}
	if o.Targets != nil && o.Targets.Refresh == nil {
		o.Targets.Refresh = o.Store.Sync // the gates ask for holds
	}
	if o.Targets != nil {
		o.Targets.Publishers = publish.PublishersIn(o.Store)
		o.Targets.KeepNotes(r.storePublishingNotes)
	}
	return r
}

// Wait returns when notifications that were begun are sent.
func (r *Runner) Wait() { r.notices.sending.Wait() }

// Hurry is for the end of the process: a notification for which others wait is not tried again from then on, so that each of them is
// sent once.
func (r *Runner) Hurry() { r.notices.sendPendingOnce() }

// LogUnsent logs each notification that is not sent.
func (r *Runner) LogUnsent() { r.notices.logUnsent() }

// WhenIdle calls do at a place for a render that no pipeline wants now, see build.Limited.
func (r *Runner) WhenIdle(ctx context.Context, do func(context.Context) error) error {
	return r.builds.WhenIdle(ctx, do)
}

// unknownFor is how long a job waits for a pipeline that this process does not know yet, or not as it is now: another one
// may have read the directory earlier. Where it is the other way round, another job comes.
const unknownFor = time.Minute

// timeSinceRequest returns how long ago a job was requested. A job from the future was requested before the clock was
// set back, and must not wait until it has caught up.
func timeSinceRequest(job queue.Job) time.Duration { return time.Since(job.Since).Abs() }

// Do runs one job. It returns nil if the job is done, also if the pipeline failed in a way that only a change of
// its source or of itself can fix; the status reports that.
func (r *Runner) Do(ctx context.Context, job queue.Job) error {
	log := r.Log.With("id", job.Cause, "pipeline", job.Pipeline)
	entry, ok := r.Catalog.Get(job.Pipeline)
	if (!ok || job.Spec != "" && job.Spec != entry.Digest) && timeSinceRequest(job) < unknownFor {
		return &queue.RetryError{After: time.Second, Err: errors.New("this process has not read the pipeline's new definition yet")}
	}
	if !ok || entry.Err != nil {
		log.Info("the pipeline was deleted or is not valid, the job is dropped")
		return nil
	}
	ctx = budget.WithTeam(ctx, entry.Scope().Team())
	if err := r.checkCluster(entry.Pipeline, job); err != nil {
		return err
	}
	// What was asked for before the job was must be known, or the request would stay open.
	state, revision, err := r.Store.LoadSynced(ctx, job.Pipeline)
	if err != nil {
		return &queue.RetryError{After: time.Second, Err: err}
	}
	if err := r.checkObject(ctx, entry); err != nil {
		return err
	}
	if err := r.checkPolicies(entry, job, state); err != nil {
		return err
	}
	control := r.Store.Control(job.Pipeline)
	if entry.Pipeline.Spec.Suspend || control.Suspended {
		log.Debug("the pipeline is suspended")
		return r.lookWhileStopped(ctx, entry, job, state, revision, control)
	}
	r.Targets.Enter(job.Cause, job.Pipeline, job.Batch)
	defer r.Targets.Leave(job.Cause, job.Pipeline)
	if r.builds.IsSlow(job.Pipeline) {
		r.Targets.Leave(job.Cause, job.Pipeline) // the others of its commit need not wait for it
	}
	ctx, span := otel.Tracer("prerig").Start(ctx, "run")
	defer span.End()
	span.SetAttributes(attribute.String("prerig.pipeline", job.Pipeline), attribute.String("prerig.id", job.Cause))
	a := &attempt{
		r: r, log: log, job: job, entry: entry, p: entry.Pipeline, state: state, stored: revision, control: control,
		started: time.Now(),
		unsure:  state.Publishing || revision == 0,
	}
	err = a.runSafely(ctx)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	if ctx.Err() != nil {
		return ctx.Err() // the process ends; the job comes again
	}
	if lost := queue.Held(ctx); lost != nil {
		return &queue.RetryError{After: time.Second, Err: lost}
	}
	retrying := state.Retrying()
	if err := a.recordRun(ctx, err); err != nil || !retrying {
		return err
	}
	return a.repollSource(ctx)
}

// checkObject returns an error that redelivers a job if another process has seen a newer definition of the
// pipeline, or its deletion: this one may be cut off from the API server for long. The number of redeliveries is
// unlimited: another process runs the job, or this one reads the cluster.
func (r *Runner) checkObject(ctx context.Context, entry catalog.Entry) error {
	if !r.Store.IsDoubted(entry.Key, entry.Object) {
		return nil
	}
	if err := r.Catalog.Confirm(ctx, entry); err != nil {
		return &queue.RetryError{After: time.Second, Err: fmt.Errorf("asking for the newest definition of the pipeline: %w", err)}
	}
	return nil
}

// checkPolicies returns an error that redelivers a job if it was planned, or the pipeline has run, with a newer
// policy than this process knows. Once the cluster can be read, and some time has passed, the known policy is
// accepted, as after the restore of a backup of etcd.
func (r *Runner) checkPolicies(entry catalog.Entry, job queue.Job, state *status.State) error {
	older, bounded := r.Builder.PolicySource().Older(entry.Pipeline, state.Seen.Policies), false
	if from, ok := r.Catalog.StatusOf(entry.Key); older == "" || !ok || from.Error == "" {
		older, bounded = cmp.Or(older, r.Builder.PolicySource().Older(entry.Pipeline, job.Policies)), true
	}
	if older == "" || bounded && timeSinceRequest(job) >= unknownFor {
		return nil
	}
	return &queue.RetryError{After: time.Second, Err: errors.New("this process has not read the newest InjectionPolicy " + older + " yet")}
}

// staleFor is how long a job waits for a process that can read the cluster: what another one was planned with may be newer.
const staleFor = 10 * time.Minute

// checkCluster returns an error that redelivers a job if this process sees another state of the cluster than it was
// planned with: it would find no work, or render an older state. Later the cluster may have changed since planning.
func (r *Runner) checkCluster(p *v1alpha1.RenderPipeline, job queue.Job) error {
	if job.Cluster == "" {
		return nil
	}
	digest, stale := r.Builder.PolicySource().ClusterState(p)
	wait, after := unknownFor, time.Second
	if stale {
		wait, after = staleFor, 10*time.Second
	}
	if digest == job.Cluster || timeSinceRequest(job) >= wait {
		return nil
	}
	if r.ReadCluster != nil {
		r.ReadCluster()
	}
	return &queue.RetryError{After: after, Err: errors.New("this process sees another state of the cluster than the job was planned with")}
}

// StageError is the error of a run with the stage that it came from.
type StageError struct {
	Stage string
	// Final means that a retry has the same outcome until an input changes.
	Final bool
	Err   error
}

// Error returns the message of the cause.
func (e *StageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StageError) Unwrap() error { return e.Err }

func (e *StageError) conditionReason() string {
	switch e.Stage {
	case status.StageSource:
		return v1alpha1.ReasonSourceFailed
	case status.StageBuild:
		return v1alpha1.ReasonBuildFailed
	case status.StageGate:
		return v1alpha1.ReasonGateClosed
	}
	return v1alpha1.ReasonPublishFailed
}
