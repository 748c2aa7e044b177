// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/publish"
)

// successorWait is how long a removal waits before it looks again whether a pipeline has taken over.
const successorWait = 5 * time.Second

// Remover removes the output of pipelines from places where they no longer publish. It is safe for concurrent use.
type Remover struct {
	// Catalog holds the existing pipelines: some may succeed a removed one.
	Catalog *catalog.Catalog
	// Store holds the registration of each pipeline, Queue accepts the job of one that returned.
	Store *status.Store
	Queue *queue.Queue
	// Targets opens the places that were published to.
	Targets *publish.Targets
	// Version of Prerig, for the commits that remove.
	Version string
	Log     *slog.Logger
}

// Remove runs the job of a missing pipeline if its removal was approved: its output is removed or left, according
// to its deletion policy, and its stored data is deleted. It returns nil if no removal is approved. It is
// idempotent.
func (r *Remover) Remove(ctx context.Context, job queue.Job) (*status.Removed, error) {
	reg, revision, err := r.Store.LoadRegistration(ctx, job.Pipeline)
	if err != nil {
		return nil, &queue.RetryError{After: time.Second, Err: err}
	}
	if reg.Removal == nil || !reg.Removal.Approved {
		return nil, nil
	}
	r.Targets.Enter(job.Cause, job.Pipeline, job.Batch)
	defer r.Targets.Leave(job.Cause, job.Pipeline)
	log := r.Log.With("id", job.Cause, "pipeline", job.Pipeline)
	message, err := r.unpublishAllTargets(ctx, job, reg)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, r.removalFailed(ctx, job.Pipeline, err)
	}
	if err := r.Store.AddRemovedUID(ctx, reg.Object.UID); err != nil {
		return nil, &queue.RetryError{After: time.Second, Err: err}
	}
	// The removal is recorded before the data is deleted: an interrupted job repeats both, and the list still
	// contains it.
	removed := &status.Removed{Pipeline: job.Pipeline, At: time.Now().UTC(), Message: message}
	if err := r.Store.AddRemoved(ctx, *removed, reg.Removal.Since); err != nil {
		log.Warn("a removal is not in the list of removed pipelines", "error", err)
	}
	if reg.Object.UID != "" || reg.Removal.Deleted {
		gone := status.RemovedObject{UID: reg.Object.UID, At: removed.At, Message: message}
		if err := r.Store.AddRemovedObject(ctx, job.Pipeline, gone, reg.Removal.Since); err != nil {
			return nil, &queue.RetryError{After: time.Second, Err: err} // its object would stay for ever
		}
	}
	forgotten, err := r.Store.Forget(ctx, job.Pipeline, revision)
	if err != nil {
		return nil, &queue.RetryError{After: time.Second, Err: err}
	}
	log.Info("removed a deleted pipeline", "policy", reg.Policy, "message", message)
	if !forgotten {
		// It came back meanwhile: what was removed is to be published again.
		again := queue.Job{Pipeline: job.Pipeline, Cause: job.Cause, Reason: "the pipeline came back", Since: time.Now(), Force: true}
		if err := r.Queue.Request(ctx, again); err != nil {
			return nil, &queue.RetryError{After: time.Second, Err: err}
		}
	}
	return removed, nil
}

// removalFailed records the error and returns when to retry.
func (r *Remover) removalFailed(ctx context.Context, pipeline string, err error) error {
	failures := 0
	waits := errors.Is(err, publish.ErrWaiting)
	saved := r.Store.ChangeRegistration(ctx, pipeline, func(reg *status.Registration) bool {
		if reg.Removal == nil || waits && reg.Removal.Message == status.OneLine(err.Error()) {
			return false
		}
		reg.Removal.Message = status.OneLine(err.Error())
		if !waits {
			reg.Removal.Failures++
			failures = reg.Removal.Failures
		}
		return true
	})
	if saved != nil {
		r.Log.Warn("the outcome of a removal could not be noted", "pipeline", pipeline, "error", saved)
	}
	if waits {
		return &queue.RetryError{After: successorWait, Err: err}
	}
	r.Log.Error("a deleted pipeline could not be removed", "pipeline", pipeline, "error", err)
	return &queue.RetryError{After: queue.Backoff(failures, pipeline), Err: err}
}

// unpublishAllTargets removes or leaves the output of the pipeline and describes the outcome.
func (r *Remover) unpublishAllTargets(ctx context.Context, job queue.Job, reg status.Registration) (string, error) {
	var left, done []string
	leave := reg.Policy != v1alpha1.DeletionDelete || reg.Suspended || r.Store.Control(job.Pipeline).Suspended
	state := r.Store.Get(job.Pipeline)
	for _, to := range slices.Concat(reg.Publish, reg.Left) {
		if !to.Removable() || leave {
			if err := r.checkTakenOver(job.Pipeline, reg, to); err != nil {
				return "", err
			}
			left = append(left, to.Target())
			continue
		}
		text, _, err := r.unpublishFromTarget(ctx, job, reg, to, state)
		if err != nil {
			return "", fmt.Errorf("removing what was published to %s: %w", to.Target(), err)
		}
		done = append(done, text)
	}
	if len(left) > 0 {
		done = append(done, "left as it is: "+strings.Join(left, ", "))
	}
	if len(done) == 0 {
		done = []string{"it had published nothing"}
	}
	return strings.Join(done, "; "), nil
}

// checkTakenOver returns an error instead of forgetting a pipeline whose files are left while another one has still
// to publish to the same place: as long as the old one is known to be removed, its files can be taken over; later
// they belong to an unknown pipeline.
func (r *Remover) checkTakenOver(pipeline string, reg status.Registration, to v1alpha1.Publish) (err error) {
	if reg.Removal == nil || !to.Removable() {
		return nil
	}
	r.Catalog.Overlapping(pipeline, to, func(other string, at v1alpha1.Publish) {
		published := r.Store.Get(other).Status.Published
		if !slices.ContainsFunc(published, func(p v1alpha1.Published) bool { return p.Target == at.Target() }) {
			err = fmt.Errorf("leaving %s: waiting for pipeline %s: %w", to.Target(), other, publish.ErrWaiting)
		}
	})
	return err
}

// unpublishFromTarget removes what a pipeline has published to one place. It returns what became of it in words, and
// whether anything was removed.
func (r *Remover) unpublishFromTarget(ctx context.Context, job queue.Job, reg status.Registration, to v1alpha1.Publish, state *status.State) (text string, changed bool, err error) {
	target, err := r.Targets.Open(ctx, reg.Namespace, to)
	if err != nil {
		return "", false, err
	}
	change := publish.Change{
		Pipeline: job.Pipeline, Cause: job.Cause, Tool: r.Version, Origin: publish.Origin{URL: reg.SourceURL}, Successors: map[string]string{},
	}
	for _, one := range state.Status.Published {
		if one.Target == to.Target() {
			change.Origin.Revision = one.SourceRevision
			if one.PullRequest != nil {
				change.Heads = []string{one.PullRequest.Head}
			}
			change.Origin.Digest = one.SourceRevision[strings.LastIndexByte(one.SourceRevision, ':')+1:]
		}
	}
	if reg.Removal != nil { // files of a pipeline that still exists and publishes to another place cannot be taken over
		r.Catalog.Overlapping(job.Pipeline, to, func(other string, at v1alpha1.Publish) { change.Successors[other] = at.Directory() })
	}
	if err := queue.Held(ctx); err != nil {
		return "", false, err
	}
	receipt, err := target.Remove(ctx, change)
	switch {
	case errors.Is(err, publish.ErrUnmanaged):
		return "nothing was published to " + to.Target(), false, nil
	case err != nil:
		return "", false, err
	case !receipt.Changed:
		return "nothing was left of it at " + to.Target(), false, nil
	}
	if r := receipt.PullRequest; r != nil {
		return fmt.Sprintf("proposed to delete %s from %s in pull request %d, %s", status.Count(len(receipt.Outcome.Deleted), "file"), to.Target(), r.Number, r.URL), true, nil
	}
	return fmt.Sprintf("deleted %s from %s in %s", status.Count(len(receipt.Outcome.Deleted), "file"), to.Target(), receipt.Revision), true, nil
}

// Predecessors returns the removed pipelines that had published to a place: the one that publishes to it now may take
// over.
func (r *Remover) Predecessors(ctx context.Context, pipeline string, to v1alpha1.Publish) []string {
	if err := r.Store.Sync(ctx); err != nil {
		return nil // what is not owned stays refused
	}
	var out []string
	for _, name := range r.Store.Registered() {
		if reg, ok := r.Store.Registration(name); ok && name != pipeline && reg.Removal != nil {
			if slices.ContainsFunc(slices.Concat(reg.Publish, reg.Left), to.Overlaps) {
				out = append(out, name)
			}
		}
	}
	return out
}
