// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package charts finds out which charts of repositories pipelines need, and locks their versions and digests.
package charts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/source/chart"
	"github.com/prerig/prerig/pipeline/source/dir"
	"github.com/prerig/prerig/pipeline/source/oci"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Wanted is a chart of a repository that a pipeline needs.
type Wanted struct {
	render.ChartReference
	// Namespace of the pipeline, which its secrets are in, and From the repository as the pipeline allows it.
	Namespace string
	From      v1alpha1.ChartRepository
}

// LockFile is one lock with what pipelines want of it.
type LockFile struct {
	// Path of the file.
	Path string
	// Old is the lock in the file, nil if none exists.
	Old *v1alpha1.ChartLock
	// Wanted has each chart once.
	Wanted []Wanted
}

// Collector gathers what pipelines need.
type Collector struct {
	// Limits bound what is read of sources.
	Limits tree.Limits
	// Files are the locks that were found so far, in the order in which pipelines named them.
	Files []*LockFile

	trees map[string]*tree.Tree // by directory: many pipelines have the same source
}

// Add adds what a pipeline needs whose source is checked out in a directory. What its source names and the pipeline does not
// allow is an error.
func (c *Collector) Add(ctx context.Context, p *v1alpha1.RenderPipeline, at string) error {
	files, err := c.treeOf(at)
	if err != nil {
		return err
	}
	request := render.Request{Type: p.Spec.Build.Type, Path: p.Spec.Build.Path, Helm: p.Spec.Build.Helm}
	found, err := reference.FindCharts(ctx, tree.NewView(files, c.Limits), request)
	if err != nil {
		return err
	}
	return c.AddFound(p, at, found)
}

// AddFound is Add for charts that were found already.
func (c *Collector) AddFound(p *v1alpha1.RenderPipeline, at string, found []render.ChartReference) error {
	file, err := c.openLockFile(filepath.Join(at, filepath.FromSlash(p.Spec.Build.ChartLock)), len(found) > 0)
	if err != nil || file == nil {
		return err
	}
	for _, one := range found {
		from, err := build.ChartRepositoryFor(p, one)
		if err != nil {
			return fmt.Errorf("%s: %w", one.Where, err)
		}
		file.add(Wanted{one, p.Metadata.Namespace, from})
	}
	return nil
}

// treeOf reads a directory once.
func (c *Collector) treeOf(at string) (*tree.Tree, error) {
	if files := c.trees[at]; files != nil {
		return files, nil
	}
	files, err := dir.Read(at, oci.DefaultLimits().Tree)
	if err != nil {
		return nil, err
	}
	if c.trees == nil {
		c.trees = map[string]*tree.Tree{}
	}
	c.trees[at] = files
	return files, nil
}

// openLockFile returns the lock at a path; nil if none exists and none is needed.
func (c *Collector) openLockFile(at string, needed bool) (*LockFile, error) {
	if i := slices.IndexFunc(c.Files, func(f *LockFile) bool { return f.Path == at }); i >= 0 {
		return c.Files[i], nil
	}
	file := &LockFile{Path: at}
	content, err := os.ReadFile(at)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !needed:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("reading the lock: %w", err)
	default:
		if file.Old, err = v1alpha1.ParseChartLock(content); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
	}
	c.Files = append(c.Files, file)
	return file, nil
}

func (f *LockFile) add(wanted Wanted) {
	known := func(w Wanted) bool {
		return v1alpha1.NormalChartRepository(w.Repository) == v1alpha1.NormalChartRepository(wanted.Repository) && w.Name == wanted.Name && w.Range == wanted.Range
	}
	if !slices.ContainsFunc(f.Wanted, known) {
		f.Wanted = append(f.Wanted, wanted)
	}
}

// Changes is what became of a lock.
type Changes struct {
	// Added, Moved and Dropped are the charts that are new, have another version or digest than before, or were
	// removed.
	Added, Moved, Dropped []v1alpha1.LockedChart
}

// Archives checks that an archive holds the chart of a name and a version. A render.Pool does.
type Archives interface {
	CheckArchive(ctx context.Context, content []byte, name, version string) error
}

// Lock returns the lock that has what is wanted. What is locked already stays, but for the charts for which renew is true:
// these get the newest version of their range. keep leaves charts in the lock that are not among the wanted.
func (f *LockFile) Lock(ctx context.Context, charts *chart.Fetcher, archives Archives, renew func(name string) bool, keep bool) (*v1alpha1.ChartLock, Changes, error) {
	old := f.Old
	if old == nil {
		old = v1alpha1.NewChartLock(nil)
	}
	var changes Changes
	var list []v1alpha1.LockedChart
	var errs []error
	for _, one := range f.Wanted {
		before := old.Find(one.Repository, one.Name, one.Range)
		if before != nil && !renew(one.Name) && chart.InRange(before.Version, one.Range) {
			list = append(list, *before)
			continue
		}
		now, content, err := charts.Resolve(ctx, one.Namespace, one.From, one.Name, one.Range)
		if err == nil {
			err = archives.CheckArchive(ctx, content, now.Name, now.Version)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", one.Where, err))
			continue
		}
		list = append(list, now)
		switch {
		case before == nil:
			changes.Added = append(changes.Added, now)
		case *before != now:
			changes.Moved = append(changes.Moved, now)
		}
	}
	for _, one := range old.Spec.Charts {
		switch {
		case f.requestsLockedChart(one):
		case keep:
			list = append(list, one)
		default:
			changes.Dropped = append(changes.Dropped, one)
		}
	}
	return v1alpha1.NewChartLock(list), changes, errors.Join(errs...)
}

// requestsLockedChart reports whether a locked chart is requested.
func (f *LockFile) requestsLockedChart(locked v1alpha1.LockedChart) bool {
	lock := v1alpha1.NewChartLock([]v1alpha1.LockedChart{locked})
	return slices.ContainsFunc(f.Wanted, func(w Wanted) bool { return lock.Find(w.Repository, w.Name, w.Range) != nil })
}
