// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/process/fault"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/kubernetes/mesh"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// attempt is one run of one pipeline.
type attempt struct {
	r       *Runner
	log     *slog.Logger
	job     queue.Job
	entry   catalog.Entry
	p       *v1alpha1.RenderPipeline
	state   *status.State
	stored  uint64 // the revision of the state as it is stored
	control status.Control
	note    *publish.Note // that it is being published, if that is stored with the commit; otherwise nil
	started time.Time
	unsure  bool // whether an earlier run may have published output that the state does not record

	resolved     time.Time // when the source was looked up
	snapshot     *source.Snapshot
	built        *build.Built
	skipped      bool // no relevant input has changed
	drift        driftResult
	settled      settledResult
	published    targetResults
	staleNotes   []string // what became of branches that it does not publish to any more
	staleRemoved bool     // whether output was removed from them
	measured     Observation
}

// runStages runs the stages in order. Its error is a *StageError.
func (a *attempt) runStages(ctx context.Context) error {
	a.measured.Queued = max(0, a.started.Sub(a.job.Since))
	if err := a.fetchSource(ctx); err != nil {
		logPanic(a.log, "fetching has panicked", err)
		return &StageError{Stage: status.StageSource, Final: errors.Is(err, tree.ErrOccupied), Err: err}
	}
	forced := isForced(a.job, a.control, a.state)
	reason, needed := a.r.Builder.Needs(a.p, a.state, a.snapshot)
	if !needed && !forced {
		if err := a.settleReviewedPullRequests(ctx); err != nil {
			return &StageError{Stage: status.StagePublish, Err: err}
		}
		if a.lookForDrift(ctx); !a.drift.repairs {
			a.skipped = true
			return nil
		}
		reason = "what is published was changed by others"
	}
	a.log.Debug("to render", "revision", a.snapshot.Revision, "because", reason)
	if err := a.renderSource(ctx); err != nil {
		return err
	}
	pub := &publication{
		r: a.r, log: a.log, cause: a.job.Cause, entry: a.entry, p: a.p, state: a.state, started: a.started,
		snapshot: a.snapshot, built: a.built, anew: forced,
	}
	if err := pub.keepPublished(ctx); err != nil {
		return &StageError{Stage: status.StagePublish, Err: err}
	}
	if err := a.checkGates(ctx); err != nil {
		return &StageError{Stage: status.StageGate, Err: err}
	}
	if err := pub.checkUpdates(ctx); err != nil {
		return publishError(err)
	}
	publish.PlaceFindings(a.p.Spec, a.built.Results, a.built.Objects, &pub.texts)
	if err := publish.CheckGates(a.p.Spec, a.built.Results, a.built.Objects); err != nil {
		return &StageError{Stage: status.StageGate, Final: true, Err: err}
	}
	if err := a.recordPublishStart(ctx); err != nil {
		return &StageError{Stage: status.StagePublish, Err: err}
	}
	pub.note = a.note
	if err := a.publishResult(ctx, pub); err != nil {
		return err
	}
	if err := a.built.UnitError(); err != nil {
		return &StageError{Stage: status.StageBuild, Final: true, Err: err}
	}
	return nil
}

// checkGates completes the results by spec.gates, in its turn if there are any.
func (a *attempt) checkGates(ctx context.Context) error {
	check := func(ctx context.Context) error {
		return a.r.Builder.CheckGates(ctx, a.p, a.snapshot.Tree, a.built.Response)
	}
	if gates := a.p.Spec.Gates; gates.Schemas == nil && gates.Admission == nil {
		return check(ctx)
	}
	return a.r.builds.Check(ctx, a.p, check)
}

// recordPublishStart stores that from here on the published output may be newer than the state records. Without that, a
// run that is killed between a push and the saving of the state leaves output behind that no later run corrects if
// the source or the pipeline returns to its previous content: the state would claim that it is unchanged.
func (a *attempt) recordPublishStart(ctx context.Context) error {
	if a.state.Publishing {
		return nil
	}
	a.state.Publishing = true
	switch {
	case a.stored == 0:
		return nil // a pipeline of which no state is stored is rendered in any case
	case a.job.Batch > 1 && !slices.ContainsFunc(a.p.Spec.Publish, func(to v1alpha1.Publish) bool { return !publish.SharesNotes(to) }):
		a.note = &publish.Note{Pipeline: a.entry.Key, Revision: a.stored}
		return nil
	}
	return a.saveState(ctx)
}

// storePublishingNotes stores for many pipelines that they are about to be published.
func (r *Runner) storePublishingNotes(ctx context.Context, notes []*publish.Note) error {
	revisions := map[string]uint64{}
	for _, n := range notes {
		revisions[n.Pipeline] = n.Revision
	}
	kept, err := r.Store.NotePublishing(ctx, revisions)
	if err != nil {
		return err
	}
	var left atomic.Int64
	left.Store(int64(len(notes)))
	for _, n := range notes {
		n.Keep(func() {
			if left.Add(-1) > 0 {
				return
			}
			if err := r.Store.EndPublishing(context.WithoutCancel(ctx), kept); err != nil {
				r.Log.Debug("a note of what was published is removed later", "error", err)
			}
		})
	}
	return nil
}

// isForced reports whether a render was requested although no input has changed.
func isForced(job queue.Job, control status.Control, state *status.State) bool {
	return job.Force || control.Force && state.Requests(control)
}

// runSafely runs, and turns a panic into an error of the stage that it was in.
func (a *attempt) runSafely(ctx context.Context) (err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		failed := &StageError{Stage: status.StagePublish, Err: fault.Recovered(r)}
		switch {
		case a.snapshot == nil:
			failed.Stage = status.StageSource
		case a.built == nil:
			failed.Stage = status.StageBuild
		}
		a.log.Error("a run has panicked", "error", failed, "stack", string(debug.Stack()))
		err = failed
	}()
	return a.runStages(ctx)
}

// logPanic logs where a panic was, if the error is about one.
func logPanic(log *slog.Logger, message string, err error) {
	if stack, ok := fault.StackOf(err); ok {
		log.Error(message, "error", err, "stack", stack)
	}
}

// renderSource builds when it is the pipeline's turn.
func (a *attempt) renderSource(ctx context.Context) (err error) {
	ctx, span := otel.Tracer("prerig").Start(ctx, "render")
	defer span.End()
	a.built, err = a.r.builds.Build(a.entry.Scope().Bind(ctx), a.p, a.snapshot.Tree)
	if a.built != nil {
		a.measured.Render = a.built.Took
	}
	if err != nil {
		logPanic(a.log, "building has panicked", err)
		if fetch := (*build.FetchError)(nil); errors.As(err, &fetch) {
			return &StageError{Stage: status.StageSource, Err: err}
		}
		// A render that is too slow, or that is killed, may only have been unlucky, a few times.
		again := ctx.Err() != nil || errors.Is(err, watchdog.ErrOverdue) || render.IsUnfinished(err) && a.state.Failures < 3
		again = again || errors.Is(err, render.ErrStart) || errors.Is(err, mesh.ErrMemory) || a.snapshot.Damaged != nil && a.snapshot.Damaged()
		return &StageError{Stage: status.StageBuild, Final: !again, Err: err}
	}
	for _, object := range a.built.Objects {
		a.measured.Bytes += len(object.YAML)
	}
	return nil
}

// reportRun logs, measures and notifies.
func (a *attempt) reportRun(ctx context.Context, entry status.Run, stage *StageError) {
	level, at := slog.LevelInfo, ""
	if stage != nil {
		level, at = slog.LevelError, stage.Stage
	}
	args := []any{"run", entry.ID, "outcome", entry.Outcome, "revision", entry.Revision, "message", entry.Message,
		"fetch", a.measured.Fetch, "render", a.measured.Render, "publish", a.measured.Publish}
	if len(entry.Published) > 0 {
		args = append(args, "published", loggedTargets(entry.Published))
	}
	a.log.Log(ctx, level, "run ended", args...)
	a.r.Observe(a.measured.ofRun(a.entry.Key, entry, at))
	a.notifyReceivers(ctx, entry, stage)
}

func (o Observation) ofRun(pipeline string, run status.Run, stage string) Observation {
	o.Pipeline, o.Run, o.Stage = pipeline, run, stage
	return o
}

// maxFindings bounds how many lines of findings a run keeps.
const maxFindings = 20

// findingLines are what a person should read of a render: warnings, and what was found about objects.
func findingLines(response *render.Response) []string {
	var out []string
	add := func(text string) {
		if len(out) < maxFindings {
			out = append(out, status.OneLine(text))
		} else if len(out) == maxFindings {
			out = append(out, "and more")
		}
	}
	for _, text := range response.Warnings {
		add("warning: " + text)
	}
	for _, one := range response.Results {
		if one.Severity != result.Info {
			add(one.String())
		}
	}
	return out
}
