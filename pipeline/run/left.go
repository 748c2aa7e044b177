// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/pipeline/status"
)

// Left gives the branches that a pipeline has published to, as far as it is known, and that are not among where it
// publishes to now. Another path on the same branch is none: the next commit there moves the files.
func Left(known status.Registration, now []v1alpha1.Publish) []v1alpha1.Publish {
	var out []v1alpha1.Publish
	for _, to := range slices.Concat(known.Left, known.Publish) {
		same := func(other v1alpha1.Publish) bool { return other.Git != nil && to.Git.SameBranch(other.Git) }
		if to.Git != nil && !slices.ContainsFunc(now, same) && !slices.ContainsFunc(out, same) {
			out = append(out, to)
		}
	}
	return out
}

// leave deals with the branches that the pipeline does not publish to any more, as its deletion policy says, once the
// result is where it is to be now. It does not rely on the keeper, which may not have seen the change yet.
func (a *attempt) leave(ctx context.Context) error {
	reg, _, err := a.r.Store.LoadRegistration(ctx, a.entry.Key)
	if err != nil {
		return &StageError{Stage: StagePublish, Err: err}
	}
	left := Left(reg, a.p.Spec.Publish)
	if len(left) == 0 || reg.Removal != nil {
		return nil
	}
	reg.SourceURL = a.snapshot.URL
	for _, to := range left {
		if a.p.Spec.DeletionPolicy != v1alpha1.DeletionDelete {
			a.left = append(a.left, "left as it is: "+Target(to))
			continue
		}
		text, changed, err := a.r.takeOffBranch(ctx, a.job, reg, to.Git, a.state, a.ready)
		if err != nil {
			one := stageOf(fmt.Errorf("removing what was published to %s, which is not in spec.publish any more (deletionPolicy: Orphan leaves it): %w", Target(to), err))
			return one
		}
		a.left, a.gone = append(a.left, text), a.gone || changed
	}
	a.log.Info("a pipeline publishes elsewhere now", "policy", a.p.Spec.DeletionPolicy, "done", a.left)
	err = a.r.Store.ChangeRegistration(ctx, a.entry.Key, func(r *status.Registration) bool {
		r.Publish, r.Left = a.p.Spec.Publish, nil
		return true
	})
	if err != nil {
		return &StageError{Stage: StagePublish, Err: err}
	}
	return nil
}

// forgetPlaces takes places out of the state that the pipeline does not publish to any more.
func (a *attempt) forgetPlaces() {
	now := map[string]bool{}
	for _, to := range a.p.Spec.Publish {
		now[Target(to)] = true
	}
	s := a.state
	s.Status.Published = slices.DeleteFunc(slices.Clone(s.Status.Published), func(p v1alpha1.Published) bool { return !now[p.Target] })
	s.Seen.Targets = maps.Clone(s.Seen.Targets)
	maps.DeleteFunc(s.Seen.Targets, func(target string, _ tree.Record) bool { return !now[target] })
}
