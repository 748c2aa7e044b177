// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// recordRun records the outcome of the run and sends notifications.
func (a *attempt) recordRun(ctx context.Context, err error) error {
	if a.skipped && err == nil {
		a.settleBranches(ctx)
		if a.drift.isNewDrift(a.state) {
			return a.recordDrift(ctx)
		}
		if endsFailure(a.state, a.settled.looked) {
			return a.recordRecovery(ctx)
		}
		return a.finishSkipped(ctx)
	}
	now := time.Now()
	entry := a.historyEntry(err, now)
	var stage *StageError
	errors.As(err, &stage)
	before := a.state.Merged()
	a.updateState(entry, stage, now)
	a.recordBranches(ctx, before, stage)
	if entry.Diff = a.r.differences.saveInTime(ctx, diffSubject{a.entry.Key, entry.ID, a.log}, a.published); entry.Diff {
		a.log.Debug("stored the difference", "run", entry.ID)
	}
	if saved := a.saveRun(ctx, entry, stage); saved != nil {
		return saved // what was published stays; the next run finds it equal
	}
	if stage == nil || stage.Final {
		return nil
	}
	after := retryWait(a.p, a.entry.Key, a.state.Failures, entry.Took)
	if asked, ok := pullrequest.Retry(err); ok {
		after = max(after, asked)
	}
	return &queue.RetryError{After: after, Err: err}
}

// retryWait returns the delay before the retry of a run after that many consecutive failures, of which the last took so long: it grows
// each time, but never exceeds the pipeline's interval. A failure may resolve at any time, and the interval defines how soon that has
// to be noticed. An interval that is too short for the cost of a try is extended to queue.LongestBackoff.
func retryWait(p *v1alpha1.RenderPipeline, key string, failures int, took time.Duration) time.Duration {
	wait := queue.Backoff(failures-1, key)
	if p.Spec.Interval == nil || p.Spec.Interval.Duration <= 0 {
		return wait
	}
	return min(wait, max(p.Spec.Interval.Duration, queue.LongestBackoff(took)))
}

// saveRun saves the state with a run in its history, and sends notifications about the run.
func (a *attempt) saveRun(ctx context.Context, entry status.Run, stage *StageError) error {
	dropped := a.state.Add(entry, a.r.History)
	if a.r.Notifier != nil && len(a.p.Spec.Notify) > 0 {
		a.r.notices.recordNotifiedReceivers(a.entry.Key, a.state)
	}
	a.state.NoteRequests(a.p, a.control)
	if err := a.saveState(ctx); err != nil {
		return &queue.RetryError{After: time.Second, Err: err}
	}
	if a.note != nil {
		a.note.End()
	}
	a.r.Store.Drop(ctx, a.entry.Key, dropped)
	a.reportRun(ctx, entry, stage)
	return nil
}

// saveState stores the state as it is now.
func (a *attempt) saveState(ctx context.Context) (err error) {
	a.stored, err = a.r.Store.Save(ctx, a.entry.Key, a.state, a.stored)
	return err
}

// endsFailure reports whether the state records a failure that is over although the run had no work: the source, or
// a result that waits for people, can be read again.
func endsFailure(state *status.State, looked bool) bool {
	c := state.Condition()
	if c == nil || state.Seen.Outcome == status.Failed || state.Seen.Outcome == status.Refused {
		return false
	}
	return c.Reason == v1alpha1.ReasonSourceFailed || looked && c.Reason == v1alpha1.ReasonPublishFailed
}

// recordRecovery records that a failure is over, and sends notifications: receivers of the failure would otherwise
// assume that it lasts until the next change.
func (a *attempt) recordRecovery(ctx context.Context) error {
	now := time.Now()
	entry := a.historyEntry(nil, now)
	entry.Outcome, entry.Message = status.Unchanged, "it works again; nothing has changed since "+a.state.Seen.Revision
	a.state.Ready(now, true, meta.SucceededReason, entry.Message, false)
	a.state.Failures = 0
	a.state.Seen.Resolved = a.resolved.UTC()
	return a.saveRun(ctx, entry, nil)
}

// finishSkipped saves only changes: most polls of a source find none.
func (a *attempt) finishSkipped(ctx context.Context) error {
	changed := a.state.NoteRequests(a.p, a.control) || a.settled.changed
	a.log.Debug("nothing that matters has changed", "revision", a.snapshot.Revision)
	a.r.Observe(a.measured.ofRun(a.entry.Key, status.Run{Run: v1alpha1.Run{Outcome: status.Unchanged}}, ""))
	if !changed {
		return nil
	}
	a.state.Seen.Resolved = a.resolved.UTC()
	if err := a.saveState(ctx); err != nil {
		return &queue.RetryError{After: time.Second, Err: err}
	}
	return nil
}

// maxCommitText bounds what is kept of a commit's author and subject, in bytes.
const maxCommitText = 200

// historyEntry is the run as the history shows it.
func (a *attempt) historyEntry(err error, now time.Time) status.Run {
	id := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", a.job.Cause, a.entry.Key, a.started.UnixNano()))
	entry := status.Run{Cause: a.job.Cause, Reason: a.job.Reason, Since: a.job.Since, Took: now.Sub(a.started)}
	if !entry.Since.IsZero() {
		entry.Passed = max(entry.Took, now.Sub(entry.Since))
	}
	entry.ID = hex.EncodeToString(id[:8])
	entry.Started, entry.Finished = metav1.NewTime(a.started.UTC()), metav1.NewTime(now.UTC())
	if a.snapshot != nil {
		entry.Revision, entry.Sources = a.snapshot.Revision, a.snapshot.SourceRevisions()
		if commit := a.snapshot.Commit; commit != nil {
			entry.Author, entry.Subject = foreign.Line(commit.Author, maxCommitText), foreign.Line(commit.Subject, maxCommitText)
		}
	}
	if a.built != nil && a.built.Response != nil {
		entry.Fingerprint, entry.Objects = a.built.Fingerprint, len(a.built.Objects)
		entry.Findings = findingLines(a.built.Response)
	}
	for _, p := range a.published {
		if p.err == nil && p.receipt.Held == "" {
			entry.Published = append(entry.Published, p.published)
		}
		if p.receipt.Warning != "" {
			entry.Findings = append(entry.Findings, status.OneLine("warning: "+p.receipt.Warning))
		}
		entry.Added, entry.Modified, entry.Deleted = entry.Added+len(p.receipt.Outcome.Added), entry.Modified+len(p.receipt.Outcome.Modified), entry.Deleted+len(p.receipt.Outcome.Deleted)
	}
	entry.Outcome, entry.Message = a.outcomeOf(err, entry)
	if held := a.published.reasonToWait(); held != "" && err == nil {
		entry.Message = status.OneLine(entry.Message + "; " + held)
	}
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
	case a.published.waitsForTurn(a.staleRemoved):
		return status.Unchanged, status.Count(entry.Objects, "object") // why it waits follows
	case !a.published.hasChanged() && !a.staleRemoved:
		return status.Unchanged, status.Count(entry.Objects, "object") + ", none different from what is published"
	case entry.Added+entry.Modified+entry.Deleted == 0:
		return status.Published, status.Count(entry.Objects, "object")
	}
	return status.Published, fmt.Sprintf("%s; %s added, %d changed, %d removed", status.Count(entry.Objects, "object"), status.Count(entry.Added, "file"), entry.Modified, entry.Deleted)
}

// waitsForTurn reports whether no output was published because a result has to wait for its turn.
func (t targetResults) waitsForTurn(staleRemoved bool) bool {
	return t.reasonToWait() != "" && !t.hasChanged() && !staleRemoved
}

// updateState brings the state up to date.
func (a *attempt) updateState(entry status.Run, stage *StageError, now time.Time) {
	s := a.state
	s.Observed = a.p.SpecDigest()
	if a.built != nil { // otherwise the output of an earlier run is still unknown
		s.Publishing = a.published.reasonToWait() != "" // then the next look at the source renders again
		s.Seen.Record, s.Seen.Revision, s.Seen.Resolved = a.built.Record, entry.Revision, a.resolved.UTC()
		s.Seen.Request, s.Seen.Policies, s.Seen.Namespaces = a.built.RequestDigest, a.built.Policies, a.built.Namespaces
		s.Seen.Outcome, s.Seen.Stage = entry.Outcome, ""
	}
	if s.Seen.Targets == nil {
		s.Seen.Targets = map[string]tree.Record{}
	}
	for _, p := range a.published {
		if p.err == nil && p.receipt.Held != "" {
			s.Status.Published = settlePublished(s.Status.Published, p.published)
		}
		if p.err == nil && p.receipt.Held == "" {
			s.Seen.Targets[p.published.Target] = p.receipt.Record
			s.Status.Published = replacePublished(s.Status.Published, p.published)
		}
	}
	if a.built != nil && a.built.Response != nil {
		s.Mesh = meshOf(a.built.Response, a.p.Spec.Gates, entry.Outcome == status.Refused)
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
	if isForced(a.job, a.control, a.state) && !a.drift.repairs {
		s.ForgetRepairs()
	}
	s.NotePublished(now, a.drift.repairs)
	s.Failures = 0
	s.Fingerprint = entry.Fingerprint
	s.Ready(now, true, meta.SucceededReason, entry.Message, false)
}

// forgetStaleTargets removes places from a state where its pipeline no longer publishes.
func forgetStaleTargets(s *status.State, publish []v1alpha1.Publish) {
	now := map[string]bool{}
	for _, to := range publish {
		now[to.Target()] = true
	}
	s.Status.Published = slices.DeleteFunc(slices.Clone(s.Status.Published), func(p v1alpha1.Published) bool { return !now[p.Target] })
	s.Seen.Targets = maps.Clone(s.Seen.Targets)
	maps.DeleteFunc(s.Seen.Targets, func(target string, _ tree.Record) bool { return !now[target] })
}

// settlePublished records the outcome of a waiting result, unless a newer one was published.
func settlePublished(list []v1alpha1.Published, now v1alpha1.Published) []v1alpha1.Published {
	out := append([]v1alpha1.Published(nil), list...)
	for i := range out {
		if out[i].Target == now.Target {
			out[i].PullRequest = now.PullRequest
		}
	}
	return out
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
