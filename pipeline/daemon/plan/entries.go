// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"time"

	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source"
)

// sourcePlan is one look at a source and what it leads to.
type sourcePlan struct {
	p        *Planner
	snapshot *source.Snapshot // nil where the source could not be looked at
	resolved time.Time        // when the look began
	look     *build.UnchangedCheck
	pending  map[string]bool
	cause    Cause

	jobs []queue.Job
	open map[string]bool // pipelines that the next look has to go through again, whatever becomes of them
}

// planEntries plans for pipelines of the source. rendered are their states from before it was looked at, nil where they
// have changed since.
func (s *sourcePlan) planEntries(ctx context.Context, entries []catalog.Entry, rendered []*status.State) {
	published := publish.Readers(s.p.Fetcher, s.p.Secrets, nil)
	published.Artifacts = s.p.Artifacts
	ctx, stop := context.WithTimeout(ctx, driftTimeout)
	defer stop()
	for i, e := range entries {
		job, control := s.cause.newJob(e), s.p.Store.Control(e.Key)
		if e.Pipeline.Spec.Suspend || control.Suspended {
			if s.isBranchNews(ctx, e, published) {
				job.Drift = true
				s.jobs = append(s.jobs, job)
			}
			continue
		}
		if s.p.Store.IsDoubted(e.Key, e.Object) {
			// Another process knows better, and plans it. If the API server disagrees, the keeper has it planned.
			s.open[e.Key] = true
			continue
		}
		state := s.p.Store.Get(e.Key)
		if s.snapshot == nil {
			// A pipeline that is being retried polls its source before it stops retrying, but does not check its
			// published output; another one must report that its source does not answer. A suspension may have
			// ended the retries.
			if s.pending[e.Key] && state.Failures > 0 && state.Retrying() && !s.cause.Now && !s.cause.Moved {
				continue
			}
			s.jobs = append(s.jobs, job)
			continue
		}
		reason, needed := s.isNeeded(ctx, e, state, control, published, &job)
		if needed || !s.look.Settles(e.Key) {
			s.open[e.Key] = true
		}
		if !needed {
			continue
		}
		s.p.Log.Debug("to run", "id", s.cause.ID, "pipeline", e.Key, "because", reason)
		job.Policies, job.Cluster = s.p.Builder.PolicySource().Versions(e.Pipeline), s.p.Builder.PolicySource().ClusterDigest(e.Pipeline)
		// A run that is under way may see a newer revision than this, and publish it before it is killed.
		if !s.pending[e.Key] && rendered[i] != nil {
			job.Revision, job.Resolved, job.Rendered = s.snapshot.Revision, s.resolved, rendered[i].Seen.Resolved
			job.Mounted = mountedRevisions(s.snapshot)
		}
		s.jobs = append(s.jobs, job)
	}
}

// isNeeded reports whether a pipeline is to run, and why. It notes in the job where that is also to look at what is published.
func (s *sourcePlan) isNeeded(ctx context.Context, e catalog.Entry, state *status.State, control status.Control, published *publish.Targets, job *queue.Job) (reason string, needed bool) {
	reason, needed = s.look.Needs(e, state)
	switch {
	case s.pending[e.Key] && s.cause.Drift && !s.cause.Moved:
		return "", false // it is at it
	case s.pending[e.Key]:
		job.Drift = s.cause.Drift
		return "a run is under way", true
	case needed:
		return reason, true
	case sourceHadFailed(state):
		return "the source answers again", true
	case state.Asked(e.Pipeline, control):
		return "a run was requested", true
	case s.cause.Drift && publish.WaitsForPeople(state):
		job.Drift = true
		return "what it has published waits for people", true
	case s.cause.Drift && s.p.needsDriftRun(ctx, published, e.Pipeline, state, s.cause.Since):
		job.Drift = true
		return "what is published was changed by someone else", true
	}
	return "", false
}

// isBranchNews reports whether a run has to read what the target branches have of a pipeline that publishes nothing at
// present.
func (s *sourcePlan) isBranchNews(ctx context.Context, e catalog.Entry, published *publish.Targets) bool {
	state := s.p.Store.Get(e.Key)
	switch {
	case !s.cause.Drift || s.pending[e.Key] || len(state.Status.Published) == 0:
		return false
	case s.cause.Moved || state.WaitsForMerge():
		return true
	}
	found, ok := s.p.findDrift(ctx, published, e.Pipeline, state, s.cause.Since)
	return ok && found != state.BranchDrift()
}
