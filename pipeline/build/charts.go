// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/source/chart"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Charts provides the archives of charts. chart.Fetcher is an implementation.
type Charts interface {
	// Archive returns the archive of a locked chart, from a repository that the pipeline allows.
	Archive(ctx context.Context, namespace string, from v1alpha1.ChartRepository, locked v1alpha1.LockedChart) ([]byte, error)
}

// lockHint describes how to add missing entries to a lock.
const lockHint = "run prerig charts lock and commit what it writes"

// chartFetch adds the charts of repositories that a build needs to its files and its request.
type chartFetch struct {
	charts  Charts
	p       *v1alpha1.RenderPipeline
	view    *tree.View
	request *render.Request
	files   tree.Reader // with the charts
}

// addNamed adds the charts that the files name, by the lock of the source.
func (f *chartFetch) addNamed(ctx context.Context) error {
	if f.request.Type != v1alpha1.BuildHelm && len(f.p.Spec.Build.ChartRepositories) == 0 {
		return nil // what kustomizations name would not be allowed
	}
	wanted, err := reference.FindCharts(ctx, f.files, *f.request)
	if err != nil {
		return err
	}
	return f.add(ctx, wanted)
}

// add adds charts that are wanted.
func (f *chartFetch) add(ctx context.Context, wanted []render.ChartReference) error {
	if len(wanted) == 0 {
		return nil
	}
	lock, err := readChartLock(f.p, f.view, wanted)
	if err != nil || lock == nil {
		return err
	}
	mounts := tree.NewMounts(f.files)
	bounded, cancel := context.WithTimeout(ctx, basesTimeout)
	defer cancel()
	for _, one := range wanted {
		locked := lock.Find(one.Repository, one.Name, one.Range)
		if locked == nil && !one.Needed {
			continue // the renderer reports it if it needs it
		}
		if locked == nil {
			err = fmt.Errorf("%s has no chart %s %s of %s; %s", f.p.Spec.Build.ChartLock, one.Name, one.Range, one.Repository, lockHint)
		} else {
			err = f.addOne(bounded, mounts, one, *locked)
		}
		var fetch *FetchError
		if err != nil && f.request.Flux != nil && !errors.As(err, &fetch) {
			f.request.Missing = append(f.request.Missing, render.MissingChart{Chart: one, Reason: err.Error()})
			err = nil // it fails the units that need it
		}
		if err != nil {
			return fmt.Errorf("%s: %w", one.Where, err)
		}
	}
	f.files = mounts
	return nil
}

// readChartLock returns the lock, nil where it may be missing and is.
func readChartLock(p *v1alpha1.RenderPipeline, view *tree.View, wanted []render.ChartReference) (*v1alpha1.ChartLock, error) {
	at := p.Spec.Build.ChartLock
	content, err := view.Read(at)
	if errors.Is(err, fs.ErrNotExist) && p.Spec.Build.Type == v1alpha1.BuildFlux {
		return &v1alpha1.ChartLock{}, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		for _, one := range wanted {
			if one.Needed {
				return nil, fmt.Errorf("%s: the chart %s of %s is not locked, as there is no %s in the source; %s", one.Where, one.Name, one.Repository, at, lockHint)
			}
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lock, err := v1alpha1.ParseChartLock(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return lock, nil
}

// addOne fetches one chart and puts it among the files.
func (f *chartFetch) addOne(ctx context.Context, mounts *tree.Mounts, wanted render.ChartReference, locked v1alpha1.LockedChart) error {
	from, err := ChartRepositoryFor(f.p, wanted)
	if err != nil {
		return err
	}
	if f.charts == nil {
		return errors.New("charts of repositories cannot be fetched here")
	}
	content, err := f.charts.Archive(ctx, f.p.Metadata.Namespace, from, locked)
	if err != nil && chart.IsPermanent(err) {
		return err
	}
	if err != nil {
		return &FetchError{err}
	}
	one, directory, file := render.NewChart(locked)
	builder := tree.NewBuilder(tree.Limits{})
	if err := builder.Add(file, tree.File, content); err != nil {
		return err
	}
	mounts.Add(directory, f.view.Beside(builder.Build()))
	f.request.Charts = append(f.request.Charts, one)
	return nil
}

// ChartRepositoryFor returns the repository of a chart with the pipeline's settings for accessing it. An error
// means that the pipeline does not allow it.
func ChartRepositoryFor(p *v1alpha1.RenderPipeline, wanted render.ChartReference) (v1alpha1.ChartRepository, error) {
	list := p.Spec.Build.ChartRepositories
	i := slices.IndexFunc(list, func(r v1alpha1.ChartRepository) bool { return r.Covers(wanted.Repository) })
	if i < 0 && !wanted.Named {
		return v1alpha1.ChartRepository{}, fmt.Errorf("the pipeline does not allow the chart repository %s (spec.build.chartRepositories)", wanted.Repository)
	}
	from := v1alpha1.ChartRepository{URL: wanted.Repository}
	if i >= 0 {
		from.SecretRef, from.Insecure = list[i].SecretRef, list[i].Insecure
	}
	return from, nil
}
