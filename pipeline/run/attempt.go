// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"runtime/debug"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"go.opentelemetry.io/otel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/catalog"
	"github.com/prerig/prerig/pipeline/fault"
	"github.com/prerig/prerig/pipeline/notify"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/queue"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/pipeline/status"
	"github.com/prerig/prerig/pipeline/watchdog"
)

// attempt is one run of one pipeline.
type attempt struct {
	r       *Runner
	log     *slog.Logger
	job     queue.Job
	entry   catalog.Entry
	p       *v1alpha1.RenderPipeline
	state   *status.State
	control status.Control
	started time.Time

	resolved     time.Time // when the source was looked up
	snapshot     *source.Snapshot
	built        *build.Built
	skipped      bool // nothing that matters has changed
	drift        driftResult
	published    []targetResult
	staleNotes   []string // what became of branches that it does not publish to any more
	staleRemoved bool     // whether something was removed there
	measured     Observation
}

// runStages goes through the stages. Its error is a *StageError.
func (a *attempt) runStages(ctx context.Context) error {
	a.measured.Queued = max(0, a.started.Sub(a.job.Since))
	if err := a.fetchSource(ctx); err != nil {
		a.logPanic("fetching has panicked", err)
		return &StageError{Stage: status.StageSource, Err: err}
	}
	forced := a.isForced()
	reason, needed := a.r.Builder.Needs(a.p, a.state, a.snapshot)
	if !needed && !forced {
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
	if err := publish.CheckResults(a.p.Spec.Gates, a.built.Results); err != nil {
		return &StageError{Stage: status.StageGate, Final: true, Err: err}
	}
	return a.publishResult(ctx)
}

// isForced reports whether somebody wants a render although nothing has changed.
func (a *attempt) isForced() bool {
	return a.job.Force || a.control.Force && a.state.Requests(a.control)
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
func (a *attempt) logPanic(message string, err error) {
	if stack, ok := fault.StackOf(err); ok {
		a.log.Error(message, "error", err, "stack", stack)
	}
}

// renderSource builds when it is the pipeline's turn.
func (a *attempt) renderSource(ctx context.Context) (err error) {
	ctx, span := otel.Tracer("prerig").Start(ctx, "render")
	defer span.End()
	a.built, err = a.r.builds.Build(ctx, a.p, a.snapshot.Tree)
	if a.built != nil {
		a.measured.Render = a.built.Took
	}
	if err != nil {
		a.logPanic("building has panicked", err)
		if fetch := (*build.FetchError)(nil); errors.As(err, &fetch) {
			return &StageError{Stage: status.StageSource, Err: err}
		}
		// A render that is too slow may only have been unlucky, a few times.
		again := ctx.Err() != nil || errors.Is(err, watchdog.ErrOverdue) || errors.Is(err, render.ErrTimeout) && a.state.Failures < 3
		again = again || a.snapshot.Damaged != nil && a.snapshot.Damaged()
		return &StageError{Stage: status.StageBuild, Final: !again, Err: err}
	}
	for _, object := range a.built.Objects {
		a.measured.Bytes += len(object.YAML)
	}
	return nil
}

// recordRun records what became of the run, and tells those who want to know.
func (a *attempt) recordRun(ctx context.Context, err error, revision uint64) error {
	if a.skipped && err == nil {
		if a.drift.isNews(a.state) {
			return a.recordDrift(ctx, revision)
		}
		return a.finishSkipped(ctx, revision)
	}
	now := time.Now()
	entry := a.historyEntry(err, now)
	var stage *StageError
	errors.As(err, &stage)
	a.updateState(entry, stage, now)
	if entry.Diff = a.saveDiffInTime(ctx, entry); entry.Diff {
		a.log.Debug("stored the difference", "run", entry.ID)
	}
	if saved := a.saveRun(ctx, entry, stage, revision); saved != nil {
		return saved // what was published stays; the next run finds it equal
	}
	if stage == nil || stage.Final {
		return nil
	}
	return &queue.RetryError{After: queue.Backoff(a.state.Failures-1, a.entry.Key), Err: err}
}

// saveRun saves the state with a run in its history, and tells of the run.
func (a *attempt) saveRun(ctx context.Context, entry status.Run, stage *StageError, revision uint64) error {
	dropped := a.state.Add(entry, a.r.History)
	a.state.NoteRequests(a.p, a.control)
	if err := a.r.Store.Save(ctx, a.entry.Key, a.state, revision); err != nil {
		return &queue.RetryError{After: time.Second, Err: err}
	}
	a.r.Store.Drop(ctx, a.entry.Key, dropped)
	a.reportRun(ctx, entry, stage)
	return nil
}

// finishSkipped saves only what is new: most looks at a source find nothing.
func (a *attempt) finishSkipped(ctx context.Context, revision uint64) error {
	changed := a.state.NoteRequests(a.p, a.control)
	failed := a.state.Seen.Outcome == status.Failed || a.state.Seen.Outcome == status.Refused
	if c := a.state.Condition(); c != nil && c.Reason == v1alpha1.ReasonSourceFailed && !failed {
		a.state.Ready(time.Now(), true, meta.SucceededReason, "nothing has changed since "+a.state.Seen.Revision, false)
		a.state.Failures, changed = 0, true
		if len(a.state.Runs) > 0 {
			a.state.Runs[0].Over = true
		}
	}
	a.log.Debug("nothing that matters has changed", "revision", a.snapshot.Revision)
	a.r.Observe(a.newObservation(status.Run{Run: v1alpha1.Run{Outcome: status.Unchanged}}, ""))
	if !changed {
		return nil
	}
	a.state.Seen.Resolved = a.resolved.UTC()
	if err := a.r.Store.Save(ctx, a.entry.Key, a.state, revision); err != nil {
		return &queue.RetryError{After: time.Second, Err: err}
	}
	return nil
}

// historyEntry is the run as the history shows it.
func (a *attempt) historyEntry(err error, now time.Time) status.Run {
	id := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", a.job.Cause, a.entry.Key, a.started.UnixNano()))
	entry := status.Run{Cause: a.job.Cause, Reason: a.job.Reason, Since: a.job.Since, Took: now.Sub(a.started)}
	entry.ID = hex.EncodeToString(id[:8])
	entry.Started, entry.Finished = metav1.NewTime(a.started.UTC()), metav1.NewTime(now.UTC())
	if a.snapshot != nil {
		entry.Revision = a.snapshot.Revision
	}
	if a.built != nil && a.built.Response != nil {
		entry.Fingerprint, entry.Objects = a.built.Fingerprint, len(a.built.Objects)
		entry.Findings = findingLines(a.built.Response)
	}
	for _, p := range a.published {
		if p.err == nil {
			entry.Published = append(entry.Published, p.published)
		}
		entry.Added, entry.Modified, entry.Deleted = entry.Added+len(p.receipt.Outcome.Added), entry.Modified+len(p.receipt.Outcome.Modified), entry.Deleted+len(p.receipt.Outcome.Deleted)
	}
	entry.Outcome, entry.Message = a.outcomeOf(err, entry)
	for _, text := range a.staleNotes {
		entry.Message += "; " + text
	}
	if a.drift.repairs && err == nil {
		entry.Message = status.OneLine(entry.Message + "; put back what others had changed: " + a.drift.found)
	}
	return entry
}

func (a *attempt) outcomeOf(err error, entry status.Run) (outcome, text string) {
	var gate *publish.GateError
	switch {
	case errors.As(err, &gate):
		return status.Refused, status.OneLine(err.Error())
	case err != nil:
		return status.Failed, status.OneLine(err.Error())
	case !a.hasChanged() && !a.staleRemoved:
		return status.Unchanged, status.Count(entry.Objects, "object") + ", none different from what is published"
	case entry.Added+entry.Modified+entry.Deleted == 0:
		return status.Published, status.Count(entry.Objects, "object")
	}
	return status.Published, fmt.Sprintf("%s; %s added, %d changed, %d removed", status.Count(entry.Objects, "object"), status.Count(entry.Added, "file"), entry.Modified, entry.Deleted)
}

func (a *attempt) hasChanged() bool {
	for _, p := range a.published {
		if p.receipt.Changed {
			return true
		}
	}
	return false
}

// updateState brings the state up to date.
func (a *attempt) updateState(entry status.Run, stage *StageError, now time.Time) {
	s := a.state
	if a.built != nil {
		s.Seen.Record, s.Seen.Revision, s.Seen.Resolved = a.built.Record, entry.Revision, a.resolved.UTC()
		s.Seen.Request = a.built.RequestDigest
		s.Seen.Outcome, s.Seen.Stage = entry.Outcome, ""
	}
	if s.Seen.Targets == nil {
		s.Seen.Targets = map[string]tree.Record{}
	}
	for _, p := range a.published {
		if p.err == nil {
			s.Seen.Targets[p.published.Target] = p.receipt.Record
			s.Status.Published = replacePublished(s.Status.Published, p.published)
		}
	}
	if stage != nil {
		s.Seen.Stage = stage.Stage
		if a.built != nil {
			s.Seen.Outcome = status.Failed
		}
		if s.Failures > 0 && s.Failing == entry.Cause {
			s.Failures++
		} else {
			s.Failures, s.Failing = 1, entry.Cause // a new event is a new chance
		}
		s.Ready(now, false, stage.conditionReason(), entry.Message, stage.Final)
		return
	}
	forgetStaleTargets(a.state, a.p.Spec.Publish)
	if a.isForced() && !a.drift.repairs {
		s.ForgetRepairs()
	}
	s.NotePublished(now, a.drift.repairs)
	s.Failures = 0
	s.Fingerprint = entry.Fingerprint
	s.Ready(now, true, meta.SucceededReason, entry.Message, false)
}

// forgetStaleTargets takes places out of a state that its pipeline does not publish to any more.
func forgetStaleTargets(s *status.State, publish []v1alpha1.Publish) {
	now := map[string]bool{}
	for _, to := range publish {
		now[to.Target()] = true
	}
	s.Status.Published = slices.DeleteFunc(slices.Clone(s.Status.Published), func(p v1alpha1.Published) bool { return !now[p.Target] })
	s.Seen.Targets = maps.Clone(s.Seen.Targets)
	maps.DeleteFunc(s.Seen.Targets, func(target string, _ tree.Record) bool { return !now[target] })
}

func replacePublished(list []v1alpha1.Published, one v1alpha1.Published) []v1alpha1.Published {
	out := append([]v1alpha1.Published(nil), list...)
	for i := range out {
		if out[i].Target == one.Target {
			out[i] = one
			return out
		}
	}
	return append(out, one)
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
	a.r.Observe(a.newObservation(entry, at))
	if a.r.Notifier == nil || len(a.p.Spec.Notify) == 0 || a.state.Runs[0].Repeats > 0 {
		return
	}
	told := notify.Run{Namespace: a.p.Metadata.Namespace, Name: a.p.Metadata.Name, Run: entry.Run, Published: a.state.Status.Published}
	if a.snapshot != nil {
		told.SourceURL = a.snapshot.URL
		if a.snapshot.Commit != nil {
			told.Commit = a.snapshot.Digest
		}
	}
	if a.r.ExternalURL != "" {
		told.Page = a.r.ExternalURL + "/runs?pipeline=" + url.QueryEscape(a.entry.Key) + "&run=" + entry.ID
	}
	// Who is told must not hold up the queue.
	ctx = context.WithoutCancel(ctx)
	a.r.notifying.Go(func() {
		_, err := watchdog.Run(ctx, a.r.Watchdog, a.step(watchdog.StepNotify, notifyTimeout), func(ctx context.Context) (struct{}, error) {
			return struct{}{}, a.r.Notifier.Send(ctx, a.p.Spec.Notify, told)
		})
		if err != nil {
			a.log.Warn("a notification was not sent", "run", entry.ID, "error", err)
		}
	})
}

// notifyTimeout bounds the notifications of one run.
const notifyTimeout = time.Minute

// step is a step of the run for the watchdog.
func (a *attempt) step(name string, limit time.Duration) watchdog.Step {
	return watchdog.Step{Name: name, Subject: a.entry.Key, Limit: limit}
}

func (a *attempt) newObservation(entry status.Run, stage string) Observation {
	o := a.measured
	o.Pipeline, o.Run, o.Stage = a.entry.Key, entry, stage
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
