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

// fetchCharts fetches the charts of repositories that a build needs, by the lock of the source, and returns a reader that has
// them too.
func (b *Builder) fetchCharts(ctx context.Context, p *v1alpha1.RenderPipeline, view *tree.View, files tree.Reader, request *render.Request) (tree.Reader, error) {
	if request.Type != v1alpha1.BuildHelm && len(p.Spec.Build.ChartRepositories) == 0 {
		return files, nil // what kustomizations name would not be allowed
	}
	wanted, err := reference.FindCharts(ctx, files, *request)
	if err != nil {
		return files, err
	}
	return b.fetchRequestedCharts(ctx, p, view, files, request, wanted)
}

// fetchRequestedCharts fetches charts that are wanted, and returns a reader that has them too.
func (b *Builder) fetchRequestedCharts(ctx context.Context, p *v1alpha1.RenderPipeline, view *tree.View, files tree.Reader, request *render.Request, wanted []render.ChartReference) (tree.Reader, error) {
	if len(wanted) == 0 {
		return files, nil
	}
	lock, err := readChartLock(p, view, wanted)
	if err != nil {
		return nil, err
	}
	if lock == nil {
		return files, nil
	}
	mounts := tree.NewMounts(files)
	bounded, cancel := context.WithTimeout(ctx, basesTimeout)
	defer cancel()
	for _, one := range wanted {
		locked := lock.Find(one.Repository, one.Name, one.Range)
		if locked == nil && !one.Needed {
			continue // the renderer reports it if it needs it
		}
		if locked == nil {
			return nil, fmt.Errorf("%s: %s has no chart %s %s of %s; %s", one.Where, p.Spec.Build.ChartLock, one.Name, one.Range, one.Repository, lockHint)
		}
		if err := b.fetchChart(bounded, p, view, mounts, request, one, *locked); err != nil {
			return nil, fmt.Errorf("%s: %w", one.Where, err)
		}
	}
	return mounts, nil
}

// readChartLock returns the lock, nil where it may be missing and is.
func readChartLock(p *v1alpha1.RenderPipeline, view *tree.View, wanted []render.ChartReference) (*v1alpha1.ChartLock, error) {
	at := p.Spec.Build.ChartLock
	content, err := view.Read(at)
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

// fetchChart fetches one chart and puts it among the files.
func (b *Builder) fetchChart(ctx context.Context, p *v1alpha1.RenderPipeline, view *tree.View, mounts *tree.Mounts, request *render.Request, wanted render.ChartReference, locked v1alpha1.LockedChart) error {
	from, err := ChartRepositoryFor(p, wanted)
	if err != nil {
		return err
	}
	if b.Charts == nil {
		return errors.New("charts of repositories cannot be fetched here")
	}
	content, err := b.Charts.Archive(ctx, p.Metadata.Namespace, from, locked)
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
	mounts.Add(directory, view.Beside(builder.Build()))
	request.Charts = append(request.Charts, one)
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
