// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/release"
	"github.com/prerig/prerig/pipeline/render/reference"
)

// recordMissingCharts notes the charts that are missing: that of a release, and dependencies of charts in the tree.
func (r *releaseRun) recordMissingCharts(ctx context.Context, object *release.Object, rendered *release.Rendered) error {
	for _, one := range rendered.Wanted {
		r.wantChart(object, one.Field, render.ChartReference{Repository: one.Repository, Name: one.Name, Range: one.Range, Where: one.Where, Needed: true})
	}
	for _, local := range rendered.Local {
		found, err := reference.FindMissing(ctx, r.files, local)
		if err != nil {
			return err
		}
		for _, one := range found {
			one.Needed = true
			r.wantChart(object, "", one)
		}
	}
	return nil
}

// wantChart notes a chart that a field of a release needs, or reports why it cannot be had.
func (r *releaseRun) wantChart(object *release.Object, field string, wanted render.ChartReference) {
	w := r.w
	if w.request.NoLock != "" {
		missing := render.MissingChart{Chart: wanted, Unlocked: true, Reason: reference.UnlockedChart(wanted, w.request.NoLock)}
		if !slices.ContainsFunc(w.request.Missing, func(m render.MissingChart) bool { return m.Chart.Same(wanted) }) {
			w.request.Missing = append(w.request.Missing, missing)
		}
	}
	if i := slices.IndexFunc(w.request.Missing, func(m render.MissingChart) bool { return m.Chart.Same(wanted) }); i >= 0 {
		if ref := object.Ref(); !strings.Contains(wanted.Where, ref.String()) {
			field = "" // it is one of an object that the release refers to
		}
		found := release.ErrorFinding(object, release.FieldError(object, field, "%s", w.request.Missing[i].Reason))
		if w.request.Missing[i].Unlocked {
			found.Tags = map[string]string{render.TagUnlocked: w.request.Missing[i].Chart.Name}
		}
		r.results = append(r.results, found)
		return
	}
	same := func(c render.Chart) bool {
		return wanted.Same(render.ChartReference{Repository: c.Repository, Name: c.Name, Range: c.Range})
	}
	if !slices.ContainsFunc(w.request.Charts, same) && !slices.ContainsFunc(w.response.Wanted, wanted.Same) {
		w.response.Wanted = append(w.response.Wanted, wanted)
	}
}
