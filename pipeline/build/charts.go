// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/source/chart"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Charts provides the archives of charts, and files. chart.Fetcher is an implementation.
type Charts interface {
	// Archive returns the archive of a locked chart, from a repository that the pipeline allows.
	Archive(ctx context.Context, namespace string, from v1alpha1.ChartRepository, locked v1alpha1.LockedChart) ([]byte, error)
	// File returns a file at or below a URL that the pipeline allows. Without a digest, it is what the server has now.
	File(ctx context.Context, namespace string, from v1alpha1.ChartRepository, locked v1alpha1.LockedFile) ([]byte, error)
}

// findNamedCharts returns the charts that the files name.
func (f *remoteFetch) findNamedCharts(ctx context.Context) ([]render.ChartReference, error) {
	if f.request.Type != v1alpha1.BuildHelm && len(f.p.Spec.Build.ChartRepositories) == 0 && !f.b.AnyRemote && f.resolve == nil {
		return nil, nil // what kustomizations name would not be allowed
	}
	return reference.FindCharts(ctx, f.files, *f.request)
}

// addNamedCharts adds the charts that the files name, by the lock of the source.
func (f *remoteFetch) addNamedCharts(ctx context.Context) error {
	wanted, err := f.findNamedCharts(ctx)
	if err != nil {
		return err
	}
	return f.addCharts(ctx, wanted, false)
}

// addLockedCharts adds those of the charts that are locked.
func (f *remoteFetch) addLockedCharts(ctx context.Context, wanted []render.ChartReference) error {
	lock, err := f.readLock()
	if err != nil {
		return err
	}
	wanted = slices.DeleteFunc(slices.Clone(wanted), func(one render.ChartReference) bool { return lock.Find(one.Repository, one.Name, one.Range) == nil })
	return f.addCharts(ctx, wanted, true)
}

// addCharts adds charts that are wanted. Without one that units or releases want, these fail, and the others are rendered.
func (f *remoteFetch) addCharts(ctx context.Context, wanted []render.ChartReference, ofUnits bool) error {
	if len(wanted) == 0 {
		return nil
	}
	lock, err := f.readLock()
	if err != nil {
		return err
	}
	mounts := tree.NewMounts(f.files)
	bounded, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	for _, one := range wanted {
		locked := lock.Find(one.Repository, one.Name, one.Range)
		if locked == nil && !one.Needed {
			continue // the renderer reports it if it needs it
		}
		switch {
		case locked != nil:
			err = f.addChart(bounded, mounts, one, *locked)
		case lock.exists:
			err = fmt.Errorf("%s has no chart %s of %s; %s", lock.path, strings.TrimSpace(one.Name+" "+one.Range), one.Repository, reference.LockHint)
		default:
			err = errors.New(reference.UnlockedChart(one, lock.path))
		}
		if err == nil {
			continue
		}
		if !ofUnits || errors.As(err, new(*FetchError)) {
			return fmt.Errorf("%s: %w", one.Where, err)
		}
		f.request.Missing = append(f.request.Missing, render.MissingChart{Chart: one, Reason: err.Error(), Unlocked: locked == nil})
	}
	f.files = mounts
	return nil
}

// addChart fetches one chart and puts it among the files.
func (f *remoteFetch) addChart(ctx context.Context, mounts *tree.Mounts, wanted render.ChartReference, locked v1alpha1.LockedChart) error {
	from, err := f.b.ChartRepositoryFor(f.p, wanted)
	if err != nil {
		return err
	}
	if f.b.Charts == nil {
		return errors.New("charts of repositories cannot be fetched here")
	}
	content, err := f.b.Charts.Archive(ctx, f.p.Metadata.Namespace, from, locked)
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
func (b *Builder) ChartRepositoryFor(p *v1alpha1.RenderPipeline, wanted render.ChartReference) (v1alpha1.ChartRepository, error) {
	list := p.Spec.Build.ChartRepositories
	i := slices.IndexFunc(list, func(r v1alpha1.ChartRepository) bool { return r.Covers(wanted.Repository) })
	if i < 0 && !wanted.Named && !b.AnyRemote {
		return v1alpha1.ChartRepository{}, fmt.Errorf("the pipeline does not allow the chart repository %s (spec.build.chartRepositories)", wanted.Repository)
	}
	from := v1alpha1.ChartRepository{URL: wanted.Repository}
	if i >= 0 {
		from.SecretRef, from.Insecure = list[i].SecretRef, list[i].Insecure
	}
	return from, nil
}
