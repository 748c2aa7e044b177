// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Outcomes of a run, as v1alpha1.Run has them.
const (
	Published = "Published"
	Unchanged = "Unchanged"
	Refused   = "Refused"
	Failed    = "Failed"
	Drifted   = "Drifted"
)

// Stages of a run, for errors and for what a later run must do again.
const (
	StageSource  = "source"
	StageBuild   = "build"
	StageGate    = "gate"
	StagePublish = "publish"
)

// State is what is known of a pipeline.
type State struct {
	// Status is what others are shown.
	Status v1alpha1.RenderPipelineStatus `json:"status"`
	// Runs are the last runs, newest first.
	Runs []Run `json:"runs,omitempty"`
	// Told records which receivers were notified of the newest run. A record of another run is ignored: versions
	// that did not keep it notify of each run once.
	Told Told `json:"told,omitzero"`
	// Mesh is what the last render decided about workloads, nil if none is known.
	Mesh *Mesh `json:"mesh,omitempty"`
	// Seen is what the last render depended on.
	Seen Seen `json:"seen"`
	// Publishing reports whether a run had begun to publish and has not recorded the outcome: the published output
	// may be newer than this state.
	Publishing bool `json:"publishing,omitempty"`
	// Drift describes known changes by others, nil if none was ever found.
	Drift *Drift `json:"drift,omitempty"`
	// Fingerprint of what is published.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Failures is the number of consecutive failures for one cause, Failing. The history does not contain it: a
	// failure that is already in it, for an earlier cause, is counted in that entry and keeps its cause.
	Failures int    `json:"failures,omitempty"`
	Failing  string `json:"failing,omitempty"`
	// Succeeded is when it was last found to be as it should; FailedRuns is how many runs have failed since, whatever their causes.
	Succeeded  time.Time `json:"succeeded,omitzero"`
	FailedRuns int       `json:"failedRuns,omitempty"`
	// Annotation is the last value of reconcile.fluxcd.io/requestedAt in the pipeline's file that was handled.
	Annotation string `json:"annotation,omitempty"`
	// OwnAnnotation is that of prerig.dev/requestedAt.
	OwnAnnotation string `json:"ownAnnotation,omitempty"`
	// Observed is the digest of the specification that the last run in the history was for.
	Observed string `json:"observed,omitempty"`
	// Requested is the last Control.RequestedAt that was handled.
	Requested string `json:"requested,omitempty"`
}

// Run is one run with what belongs to it.
type Run struct {
	v1alpha1.Run `json:",inline"`
	// Cause is the id of the event, request or tick, Reason describes it in words.
	Cause  string `json:"cause,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Since is when the event was stored.
	Since time.Time `json:"since,omitzero"`
	// Took is how long it took; the times of a Run are of whole seconds. Passed is the time from the event to its end.
	Took   time.Duration `json:"took,omitempty"`
	Passed time.Duration `json:"passed,omitempty"`
	// Repeats is how often the same failure came again.
	Repeats int `json:"repeats,omitempty"`
	// Over reports whether the failed source has answered again since. It is read in states of versions that added
	// no run for that.
	Over bool `json:"over,omitempty"`
	// Warnings and findings, one line each, bounded.
	Findings []string `json:"findings,omitempty"`
	// Published is where the result went.
	Published []v1alpha1.Published `json:"published,omitempty"`
	// Files counts what was added, modified and deleted.
	Added    int `json:"added,omitempty"`
	Modified int `json:"modified,omitempty"`
	Deleted  int `json:"deleted,omitempty"`
	// Diff reports whether a difference is stored.
	Diff bool `json:"diff,omitempty"`
}

// Told records which of the receivers of a run were notified.
type Told struct {
	// Run is the run's ID, Receivers names them: what it is made of is a secret.
	Run       string   `json:"run,omitempty"`
	Receivers []string `json:"receivers,omitempty"`
}

// Seen is what a render depended on.
type Seen struct {
	// Outcome of the run, and the stage that failed.
	Outcome string `json:"outcome,omitempty"`
	Stage   string `json:"stage,omitempty"`
	// Revision of the source, and when it was looked up.
	Revision string    `json:"revision,omitempty"`
	Resolved time.Time `json:"resolved,omitzero"`
	// Request is a digest of everything but the source.
	Request string `json:"request,omitempty"`
	// Policies are the policies that are objects of a cluster, as in queue.Job.
	Policies map[string]queue.ObjectVersion `json:"policyVersions,omitempty"`
	// Namespaces maps the inspected namespaces to digests of their content in the cluster, for policies with from:
	// Cluster.
	Namespaces map[string]string `json:"namespaces,omitempty"`
	// Record is what was read of the source, empty where it is too large to keep.
	Record tree.Record `json:"record,omitempty"`
	// Targets are what was written, by the names of the places.
	Targets map[string]tree.Record `json:"targets,omitempty"`
}

// Control is what people asked for with the command line or the API.
type Control struct {
	// Suspended stops the pipeline.
	Suspended bool `json:"suspended,omitempty"`
	// Confirmed is the ID of the last Hold at the time this was set.
	Confirmed string `json:"confirmed,omitempty"`
	// Held reports whether it is suspended because of a Hold. It is not stored.
	Held bool `json:"-"`
	// OnHold is set where a person has put it on hold. Then Suspended is true in what Store.Control returns.
	OnHold *OnHold `json:"onHold,omitempty"`
	// RequestedAt is the token of the last reconcile request.
	RequestedAt string `json:"requestedAt,omitempty"`
	// Force requests a render although no input has changed.
	Force bool `json:"force,omitempty"`
}

// Ready sets the conditions after a run.
func (s *State) Ready(now time.Time, ok bool, reason, message string, stalled bool) {
	status := metav1.ConditionFalse
	if ok {
		status = metav1.ConditionTrue
		s.Succeeded, s.FailedRuns = now.UTC(), 0
	} else {
		s.Succeeded, s.FailedRuns = s.LastSuccess(), s.ConsecutiveFailures()+1
	}
	s.setCondition(now, meta.ReadyCondition, status, reason, message)
	conditions.RemoveStatusCondition(&s.Status.Conditions, meta.ReconcilingCondition)
	if stalled {
		s.setCondition(now, meta.StalledCondition, metav1.ConditionTrue, reason, message)
	} else {
		conditions.RemoveStatusCondition(&s.Status.Conditions, meta.StalledCondition)
	}
	if !ok && !stalled {
		s.setCondition(now, meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingWithRetryReason, "the run is tried again")
	}
}

// LastSuccess returns when a run last succeeded, or the zero time if none has. For states of versions that did not
// store it, it is read from their history, as far as that reaches.
func (s *State) LastSuccess() time.Time {
	if !s.Succeeded.IsZero() {
		return s.Succeeded
	}
	for _, r := range s.Runs {
		if r.Outcome == Published || r.Outcome == Unchanged {
			return r.Finished.Time
		}
	}
	return time.Time{}
}

// ConsecutiveFailures returns how many runs have failed since the last that succeeded, whatever their causes.
func (s *State) ConsecutiveFailures() int {
	if c := s.Condition(); s.FailedRuns > 0 || c == nil || c.Status == metav1.ConditionTrue {
		return s.FailedRuns
	}
	failed := 0
	for _, r := range s.Runs {
		if r.Outcome == Published || r.Outcome == Unchanged || r.Over {
			break
		}
		if r.Outcome == Drifted {
			continue
		}
		failed += 1 + r.Repeats
	}
	return failed
}

// RetryCause returns the cause of the job that failed last, where that is tried again.
func (s *State) RetryCause() (cause string, ok bool) {
	return s.Failing, s.Failures > 0 && s.Retrying()
}

// maxMessage bounds a condition's message.
const maxMessage = 4096

func (s *State) setCondition(now time.Time, kind string, status metav1.ConditionStatus, reason, message string) {
	if len(message) > maxMessage {
		message = message[:maxMessage] + "…"
	}
	conditions.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now.UTC().Truncate(time.Second)),
	})
}

// Condition returns the condition Ready, or nil if none is set yet.
func (s *State) Condition() *metav1.Condition {
	return conditions.FindStatusCondition(s.Status.Conditions, meta.ReadyCondition)
}

// Stalled reports whether the pipeline waits for a change.
func (s *State) Stalled() bool {
	return conditions.IsStatusConditionTrue(s.Status.Conditions, meta.StalledCondition)
}

// Retrying reports whether the last run failed in a way that trying again may mend.
func (s *State) Retrying() bool {
	return conditions.IsStatusConditionTrue(s.Status.Conditions, meta.ReconcilingCondition)
}

// Add prepends a run to the history and returns the runs that it pushed out. A failure that only repeats the last
// one is counted with that one instead, unless that was over in between.
func (s *State) Add(r Run, keep int) (dropped []Run) {
	last := r.Run
	s.Status.LastRun = &last
	if len(s.Runs) > 0 {
		old := &s.Runs[0]
		if r.Outcome != Published && !old.Over && old.Outcome == r.Outcome && old.Message == r.Message && old.Revision == r.Revision && slices.Equal(old.Sources, r.Sources) {
			old.Repeats++
			old.Finished = r.Finished
			return nil
		}
	}
	s.Runs = append([]Run{r}, s.Runs...)
	if len(s.Runs) > keep {
		dropped = s.Runs[keep:]
		s.Runs = s.Runs[:keep:keep]
	}
	return dropped
}
