// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Bounds of what a renderer may ask for: which charts releases need is known when they are built, and those of releases that other
// releases make when these are rendered.
const (
	maxChartRounds  = 8
	maxChartsWanted = 500
)

// repositoriesOf returns the Git repositories whose files a pipeline has. Those that it names itself go first.
func repositoriesOf(p *v1alpha1.RenderPipeline) []render.Repository {
	var out []render.Repository
	if releases := p.Spec.Build.Releases; releases != nil {
		for _, one := range releases.Repositories {
			out = append(out, render.Repository{URL: one.URL, Path: one.Path, Any: true})
		}
	}
	for _, one := range p.AllSources() {
		if one.Git == nil {
			continue
		}
		at := one.MountPath
		if at == "" {
			at = "."
		}
		out = append(out, render.Repository{URL: one.Git.URL, Path: at, Ref: one.Git.Ref})
	}
	return out
}

// renderWithCharts renders, and again with the charts that releases turn out to need. Each is fetched before the render that uses it.
func (b *Builder) renderWithCharts(ctx context.Context, p *v1alpha1.RenderPipeline, charts *chartFetch) (*render.Response, error) {
	for range maxChartRounds {
		response, err := b.renderFromRemembered(ctx, p, charts.files, *charts.request)
		if err != nil || len(response.Wanted) == 0 {
			return response, err
		}
		if len(response.Wanted)+len(charts.request.Charts) > maxChartsWanted {
			return nil, &tree.LimitError{What: "the number of charts of releases", Limit: maxChartsWanted}
		}
		if err := charts.add(ctx, response.Wanted); err != nil {
			return nil, err
		}
	}
	return nil, &tree.LimitError{What: "the number of releases that make releases", Limit: maxChartRounds}
}

// FindCharts returns the charts of repositories that a pipeline needs. Where it renders releases it builds to find them, and again with
// those that are locked already, as they may make releases too; what these need and cannot be fetched is not found.
func (b *Builder) FindCharts(ctx context.Context, p *v1alpha1.RenderPipeline, root *tree.Tree) ([]render.ChartReference, error) {
	limits, err := b.Limits.Lower(p.Spec.Build.Limits)
	if err != nil {
		return nil, err
	}
	view := tree.NewView(root, limits.Read)
	request := newRequest(p, limits, b.Alone)
	if request.Releases == nil {
		return reference.FindCharts(ctx, view, request)
	}
	files, err := b.fetchBases(ctx, p, view, &request)
	if err != nil {
		return nil, err
	}
	found, err := reference.FindCharts(ctx, files, request)
	if err != nil {
		return nil, err
	}
	request.Discover = true
	charts := &chartFetch{charts: b.Charts, p: p, view: view, request: &request, files: files}
	wanted := found
	for round := range maxChartRounds {
		before := len(request.Charts)
		if err := charts.addLocked(ctx, wanted); err != nil {
			return nil, err
		}
		if round > 0 && len(request.Charts) == before {
			break
		}
		response, err := b.Renderer.Render(ctx, charts.files, request)
		if err != nil {
			return nil, err
		}
		found, wanted = append(found, response.Wanted...), response.Wanted
	}
	return found, nil
}

// addLocked adds those of the charts that are locked.
func (f *chartFetch) addLocked(ctx context.Context, wanted []render.ChartReference) error {
	content, err := f.view.Read(f.p.Spec.Build.ChartLock)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lock, err := v1alpha1.ParseChartLock(content)
	if err != nil {
		return fmt.Errorf("%s: %w", f.p.Spec.Build.ChartLock, err)
	}
	var locked []render.ChartReference
	for _, one := range wanted {
		if lock.Find(one.Repository, one.Name, one.Range) != nil {
			locked = append(locked, one)
		}
	}
	return f.add(ctx, locked)
}
