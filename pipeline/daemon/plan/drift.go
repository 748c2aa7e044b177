// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/publish"
)

const (
	// driftTimeout bounds the look at what the pipelines of one source have published.
	driftTimeout = time.Minute
	// targetTimeout bounds the look at each place that one of them publishes to, so that others have their turn.
	targetTimeout = 20 * time.Second
)

// needsDriftRun reports whether a run has to record, or to revert, changes by others since then to the published
// output of a pipeline. The run checks again by itself: another may have published meanwhile.
func (p *Planner) needsDriftRun(
	ctx context.Context,
	targets *publish.Targets,
	pipeline *v1alpha1.RenderPipeline,
	state *status.State,
	since time.Time,
) bool {
	found, ok := p.findDrift(ctx, targets, pipeline, state, since)
	switch {
	case !ok:
		return false // a run could do no more
	case found != state.DriftFound() || found == "" && state.IsDrifted():
		return true
	}
	return found != "" && pipeline.Spec.Drift == v1alpha1.DriftRepair && state.RepairDue(time.Now())
}

// findDrift describes the changes by others to the published output of a pipeline, and returns false if they cannot be
// found out. Answers that a server has sent since then are not requested again.
func (p *Planner) findDrift(
	ctx context.Context,
	targets *publish.Targets,
	pipeline *v1alpha1.RenderPipeline,
	state *status.State,
	since time.Time,
) (found string, ok bool) {
	isSilent := func(to v1alpha1.Publish) bool { return p.unresponsiveTargets.isUnresponsive(addressOf(to)) }
	if slices.ContainsFunc(pipeline.Spec.Publish, isSilent) {
		return "", false
	}
	found, err := publish.FindDrift(ctx, targets, pipeline, state, since, cmp.Or(p.targetWait, targetTimeout))
	if err != nil {
		if look := (*publish.LookError)(nil); errors.As(err, &look) && look.Silent {
			p.unresponsiveTargets.markUnresponsive(addressOf(look.To))
		}
		p.Log.Debug("what is published cannot be looked at", "pipeline", pipeline.Key(), "error", err)
		return "", false
	}
	return found, true
}

func addressOf(to v1alpha1.Publish) string {
	_, url := to.Address()
	return url
}
