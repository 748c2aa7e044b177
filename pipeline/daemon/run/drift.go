// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/publish"
)

// driftTimeout bounds the look at what is published.
const driftTimeout = time.Minute

// driftResult is what a run has found of changes by others.
type driftResult struct {
	looked  bool   // whether it is known
	found   string // "" if unchanged
	repairs bool   // it is put back
}

// lookForDrift checks whether others have changed the published output, if the planner has detected that or a check
// was requested. Output that cannot be read counts as unchanged.
func (a *attempt) lookForDrift(ctx context.Context) {
	if !a.job.Drift && !a.state.Asked(a.p, a.control) {
		return
	}
	step := watchdog.Step{Name: watchdog.StepPublish, Subject: a.entry.Key, Limit: driftTimeout}
	found, err := watchdog.Run(ctx, a.r.Watchdog, step, func(ctx context.Context) (string, error) {
		return publish.FindDrift(ctx, a.r.Targets, a.p, a.state, a.started, 0)
	})
	if err != nil {
		a.log.Warn("what is published cannot be looked at", "error", err)
		return
	}
	a.drift = driftResult{looked: true, found: found}
	a.drift.repairs = found != "" && a.p.Spec.Drift == v1alpha1.DriftRepair && a.state.RepairDue(time.Now())
}

// settledResult is what a run has found of what people did with what waits for them.
type settledResult struct{ looked, changed bool }

// settleReviewedPullRequests brings to an end what people have done with pull requests that the pipeline's results wait
// in.
func (a *attempt) settleReviewedPullRequests(ctx context.Context) error {
	if !a.job.Drift && !a.state.Asked(a.p, a.control) || !publish.WaitsForPeople(a.state) {
		return nil
	}
	step := watchdog.Step{Name: watchdog.StepPublish, Subject: a.entry.Key, Limit: publish.PublishWait}
	changed, err := watchdog.Run(ctx, a.r.Watchdog, step, func(ctx context.Context) (bool, error) {
		return publish.Settle(ctx, a.r.Targets, a.p, a.state, a.started)
	})
	a.settled = settledResult{looked: err == nil, changed: changed}
	if changed {
		a.log.Info("what waits for people has changed", "published", loggedTargets(a.state.Status.Published))
	}
	return err
}

// isNewDrift reports whether a state does not record the finding yet. A state that reports a failure keeps reporting
// that.
func (d driftResult) isNewDrift(s *status.State) bool {
	if !d.looked || d.repairs {
		return false
	}
	c := s.Condition()
	if c == nil || c.Status != "True" && !s.IsDrifted() {
		return false
	}
	return d.found != s.DriftFound() || (d.found != "") != s.IsDrifted()
}

// recordDrift records in the state that others have changed the published output, or that it matches again, and
// sends notifications.
func (a *attempt) recordDrift(ctx context.Context) error {
	now := time.Now()
	entry := a.historyEntry(nil, now)
	if a.drift.found == "" {
		entry.Outcome, entry.Message = status.Unchanged, "what is published is again as it was written"
		a.state.NotePublished(now, false)
		a.state.Ready(now, true, meta.SucceededReason, entry.Message, false)
		if a.state.Mesh != nil && !a.state.WaitsForMerge() {
			a.state.Mesh.OnBranch = nil
		}
	} else {
		entry.Outcome, entry.Message = status.Drifted, status.OneLine(driftMessage(a.p.Spec.Drift, a.drift.found, a.state.Repairs(now)))
		a.state.NoteDrift(now, a.drift.found, entry.Message)
		a.log.Warn("others have changed what is published", "drift", a.drift.found)
		a.refreshBranches(ctx, a.drift.found)
	}
	a.state.Seen.Resolved = a.resolved.UTC()
	return a.saveRun(ctx, entry, nil)
}

// driftMessage describes the changes by others and the reaction to them.
func driftMessage(policy v1alpha1.DriftPolicy, found string, repairs int) string {
	switch {
	case policy != v1alpha1.DriftRepair:
		return "others have changed what is published: " + found + ". prerig daemon reconcile --force puts it back, spec.drift: Repair always does"
	case repairs >= status.MaxRepairs:
		return fmt.Sprintf("others have changed what is published: %s. It was put back %d times and changed again: something else writes there. "+
			"It is tried again after %s without a repair, or by prerig daemon reconcile --force", found, repairs, status.RepairsForgotten)
	}
	return "others have changed what is published: " + found + ". It was put back a moment ago already, and is again in a while"
}
