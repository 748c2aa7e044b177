// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/pipeline/status"
)

// driftCheck finds out whether published files are still what they were. It looks at each branch once.
type driftCheck struct{ targets *publish.Targets }

func newDrift(repositories publish.Repositories) driftCheck {
	var heads source.Once[*tree.Tree]
	return driftCheck{publish.Readers(repositories, nil, heads.Get)}
}

// hasDrifted reports whether any place of a pipeline differs. One that cannot be looked at does not count: the run could do no more.
func (d driftCheck) hasDrifted(ctx context.Context, p *v1alpha1.RenderPipeline, state *status.State) bool {
	for _, to := range p.Spec.Publish {
		record := state.Seen.Targets[to.Target()]
		if len(record) == 0 {
			continue
		}
		target, err := d.targets.Open(ctx, p.Metadata.Namespace, to)
		if err != nil {
			continue
		}
		now, err := target.Written(ctx)
		if err != nil || now == nil {
			continue
		}
		if _, affected := record.Affected(now); affected {
			return true
		}
	}
	return false
}
