// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"errors"
	"fmt"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/publish"
)

// errOtherDefinition is about a pipeline that is registered with other branches. One of the two definitions is old,
// and no output may be removed from places of the newer one.
var errOtherDefinition = errors.New("this process and prerig serve have different definitions of the pipeline for now")

// RemoveStale removes or leaves the output at places where a pipeline no longer publishes, according to its
// deletion policy, and forgets these places. Call it once the result is at its current place. sourceURL is the
// source of that render, state the known state of the pipeline. notes describe the outcome for each place; changed
// reports whether any output was removed.
func (r *Remover) RemoveStale(ctx context.Context, job queue.Job, p *v1alpha1.RenderPipeline, sourceURL string, state *status.State) (notes []string, changed bool, err error) {
	reg, _, err := r.Store.LoadRegistration(ctx, job.Pipeline)
	if err != nil {
		return nil, false, err
	}
	stale := publish.Stale(reg, p.Spec.Publish)
	if len(stale) == 0 || reg.Removal != nil {
		return nil, false, nil
	}
	if !isRegistered(reg, p) {
		return nil, false, fmt.Errorf("looking for branches that are not in spec.publish any more: %w", errOtherDefinition)
	}
	reg.SourceURL = sourceURL
	for _, to := range stale {
		if p.Spec.DeletionPolicy != v1alpha1.DeletionDelete {
			notes = append(notes, "left as it is: "+to.Target())
			continue
		}
		text, removed, err := r.unpublishFromTarget(ctx, job, reg, to, state)
		if err != nil {
			return notes, changed, fmt.Errorf("removing what was published to %s, which is not in spec.publish any more (deletionPolicy: Orphan leaves it): %w", to.Target(), err)
		}
		notes, changed = append(notes, text), changed || removed
	}
	r.Log.Info("a pipeline publishes elsewhere now", "id", job.Cause, "pipeline", job.Pipeline, "policy", p.Spec.DeletionPolicy, "done", notes)
	err = r.Store.ChangeRegistration(ctx, job.Pipeline, func(r *status.Registration) bool {
		if !isRegistered(*r, p) {
			return false
		}
		r.Left = nil
		return true
	})
	return notes, changed, err
}

// isRegistered reports whether the pipeline is registered with the branches that this definition of it has.
func isRegistered(reg status.Registration, p *v1alpha1.RenderPipeline) bool {
	return len(publish.Stale(status.Registration{Publish: reg.Publish}, p.Spec.Publish)) == 0 &&
		len(publish.Stale(status.Registration{Publish: p.Spec.Publish}, reg.Publish)) == 0
}
