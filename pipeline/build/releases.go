// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Bounds of what a renderer may ask for: which charts and remote bases units and releases need is known when they are built, and those
// of releases that other releases make, and of bases that bases name, when these are.
const (
	maxRounds       = 20
	maxChartsWanted = 500
	maxBasesWanted  = 200
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

// renderWithRemotes renders, and again with the charts and remote bases that the build turns out to need. Each is fetched before the
// render that uses it.
func (b *Builder) renderWithRemotes(ctx context.Context, f *remoteFetch) (*render.Response, error) {
	if f.request.Review {
		lock, err := f.readLock()
		if err != nil {
			return nil, err
		}
		if !lock.exists {
			f.request.NoLock = lock.path
		}
	}
	for range maxRounds {
		response, err := b.renderFromRemembered(ctx, f.p, f.files, *f.request)
		if err != nil || !response.IsWanting() {
			return response, err
		}
		if len(response.Wanted)+len(f.request.Charts) > maxChartsWanted {
			return nil, &tree.LimitError{What: "the number of charts of releases", Limit: maxChartsWanted}
		}
		if len(response.WantedBases)+len(f.request.Bases) > maxBasesWanted {
			return nil, &tree.LimitError{What: "the number of remote bases", Limit: maxBasesWanted}
		}
		if err := f.addBases(ctx, response.WantedBases); err != nil {
			return nil, err
		}
		if err := f.addCharts(ctx, response.Wanted, true); err != nil {
			return nil, err
		}
	}
	return nil, &tree.LimitError{What: "the number of releases that make releases, and of bases below bases,", Limit: maxRounds}
}
