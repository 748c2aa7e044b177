// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/batch"
	"github.com/prerig/prerig/pipeline/cli/overlay"
)

// findOverlays finds the kustomizations that may break if the files of the run are injected where they are. Output
// that is written elsewhere is of no kustomization.
func (in *injectRun) findOverlays(ctx context.Context, b *batch.Batch) (*overlay.Set, error) {
	removes := true
	for _, p := range in.allPolicies() {
		removes = removes && (in.remove || p.Spec.Mode == v1alpha1.ModeRemove)
	}
	if removes || !in.inPlace && !in.check && !in.diff {
		return &overlay.Set{}, nil
	}
	var paths []string
	for _, f := range b.Files {
		if !f.Input.Stdin() {
			paths = append(paths, f.Input.Path)
		}
	}
	if len(paths) == 0 {
		return &overlay.Set{}, nil
	}
	return overlay.Find(ctx, paths)
}

// checkOverlays returns what would break in kustomizations. It is an error where the files are, or are to be, injected
// in place, and a warning where their diff is only shown.
func (in *injectRun) checkOverlays(overlays *overlay.Set, b *batch.Batch, report *fn.Report) result.Results {
	found := overlays.Check(report.Outcomes, b.Items())
	if in.inPlace || in.check {
		return found
	}
	for i := range found {
		found[i].Severity = result.Warning
	}
	return found
}
