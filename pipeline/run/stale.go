// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/pipeline/status"
)

// errOtherDefinition is about a pipeline that is registered with other branches. One of the two definitions is old, and
// nothing may be removed from where the newer one publishes to.
var errOtherDefinition = errors.New("this process and prerig serve have different definitions of the pipeline for now")

// handleStaleTargets deals with the branches that the pipeline does not publish to any more, as its deletion policy says, once the
// result is where it is to be now.
func (a *attempt) handleStaleTargets(ctx context.Context) error {
	reg, _, err := a.r.Store.LoadRegistration(ctx, a.entry.Key)
	if err != nil {
		return &StageError{Stage: status.StagePublish, Err: err}
	}
	left := publish.Stale(reg, a.p.Spec.Publish)
	if len(left) == 0 || reg.Removal != nil {
		return nil
	}
	if !isRegistered(reg, a.p) {
		return &StageError{Stage: status.StagePublish, Err: fmt.Errorf("looking for branches that are not in spec.publish any more: %w", errOtherDefinition)}
	}
	reg.SourceURL = a.snapshot.URL
	for _, to := range left {
		if a.p.Spec.DeletionPolicy != v1alpha1.DeletionDelete {
			a.staleNotes = append(a.staleNotes, "left as it is: "+to.Target())
			continue
		}
		text, changed, err := a.r.unpublishFrom(ctx, a.job, reg, to, a.state, a.ready)
		if err != nil {
			one := publishError(fmt.Errorf("removing what was published to %s, which is not in spec.publish any more (deletionPolicy: Orphan leaves it): %w", to.Target(), err))
			return one
		}
		a.staleNotes, a.staleRemoved = append(a.staleNotes, text), a.staleRemoved || changed
	}
	a.log.Info("a pipeline publishes elsewhere now", "policy", a.p.Spec.DeletionPolicy, "done", a.staleNotes)
	err = a.r.Store.ChangeRegistration(ctx, a.entry.Key, func(r *status.Registration) bool {
		if !isRegistered(*r, a.p) {
			return false
		}
		r.Left = nil
		return true
	})
	if err != nil {
		return &StageError{Stage: status.StagePublish, Err: err}
	}
	return nil
}

// isRegistered reports whether the pipeline is registered with the branches that this definition of it has.
func isRegistered(reg status.Registration, p *v1alpha1.RenderPipeline) bool {
	return len(publish.Stale(status.Registration{Publish: reg.Publish}, p.Spec.Publish)) == 0 &&
		len(publish.Stale(status.Registration{Publish: p.Spec.Publish}, reg.Publish)) == 0
}

// forgetStaleTargets takes places out of the state that the pipeline does not publish to any more.
func (a *attempt) forgetStaleTargets() {
	now := map[string]bool{}
	for _, to := range a.p.Spec.Publish {
		now[to.Target()] = true
	}
	s := a.state
	s.Status.Published = slices.DeleteFunc(slices.Clone(s.Status.Published), func(p v1alpha1.Published) bool { return !now[p.Target] })
	s.Seen.Targets = maps.Clone(s.Seen.Targets)
	maps.DeleteFunc(s.Seen.Targets, func(target string, _ tree.Record) bool { return !now[target] })
}
