// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package lock finds out what pipelines need from other servers, and locks it: the versions and digests of charts, the commits of remote
// bases, the digests of remote files.
package lock

import (
	"cmp"
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
	"github.com/prerig/prerig/pipeline/source/chart"
)

// Wanted is a chart of a repository that a pipeline needs.
type Wanted struct {
	render.ChartReference
	// Namespace of the pipeline, which its secrets are in, and From the repository as the pipeline allows it.
	Namespace string
	From      v1alpha1.ChartRepository
}

// File is one lock with what pipelines want of it.
type File struct {
	// Path of the file: Name, with slashes, in the directory Source.
	Path, Source, Name string
	// Content of the file, nil if none exists.
	Content []byte
	// Old is the lock in the file, empty if none exists.
	Old *v1alpha1.ChartLock
	// Wanted has each chart once, Bases and Files each remote base and file.
	Wanted []Wanted
	Bases  []build.ResolvedBase
	Files  []build.ResolvedFile
}

// Collector gathers what pipelines need.
type Collector struct {
	// Files are the locks that were found so far, in the order in which pipelines named them.
	Files []*File
}

// Add adds what a pipeline needs whose source is checked out in a directory. What its source names and the pipeline
// does not allow is an error.
func (c *Collector) Add(b *build.Builder, p *v1alpha1.RenderPipeline, at string, found *build.References) error {
	needed := len(found.Charts)+len(found.Bases)+len(found.Files) > 0
	file, err := c.openFile(at, p.Spec.Build.ChartLock, needed)
	if err != nil || file == nil {
		return err
	}
	for _, one := range found.Charts {
		from, err := b.ChartRepositoryFor(p, one)
		if err != nil {
			return fmt.Errorf("%s: %w", one.Where, err)
		}
		file.add(Wanted{one, p.Metadata.Namespace, from})
	}
	for _, one := range found.Bases {
		if !slices.ContainsFunc(file.Bases, func(known build.ResolvedBase) bool { return known.Repository == one.Repository && known.Ref == one.Ref }) {
			file.Bases = append(file.Bases, one)
		}
	}
	for _, one := range found.Files {
		if !slices.ContainsFunc(file.Files, func(known build.ResolvedFile) bool { return known.URL == one.URL }) {
			file.Files = append(file.Files, one)
		}
	}
	return nil
}

// openFile returns the lock of a source; nil if none exists and none is needed.
func (c *Collector) openFile(source, name string, needed bool) (*File, error) {
	at := filepath.Join(source, filepath.FromSlash(name))
	if i := slices.IndexFunc(c.Files, func(f *File) bool { return f.Path == at }); i >= 0 {
		return c.Files[i], nil
	}
	file := &File{Path: at, Source: source, Name: name, Old: v1alpha1.NewChartLock(v1alpha1.ChartLockSpec{})}
	var err error
	file.Content, err = readWithin(source, name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !needed:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("reading the lock %s: %w", at, err)
	default:
		if file.Old, err = v1alpha1.ParseChartLock(file.Content); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
	}
	c.Files = append(c.Files, file)
	return file, nil
}

// maxLock bounds a lock, in bytes.
const maxLock = 16 << 20

// readWithin returns a regular file of a source. The author of the source may have put a link in its place, which leads
// elsewhere, or a device, which never ends.
func readWithin(source, name string) ([]byte, error) {
	root, err := os.OpenRoot(source)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(name))
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > maxLock:
		return nil, fmt.Errorf("it has more than %d bytes", maxLock)
	}
	return root.ReadFile(filepath.FromSlash(name))
}

func (f *File) add(wanted Wanted) {
	known := func(w Wanted) bool {
		return v1alpha1.NormalChartRepository(w.Repository) == v1alpha1.NormalChartRepository(wanted.Repository) &&
			w.Name == wanted.Name && w.Range == wanted.Range
	}
	if !slices.ContainsFunc(f.Wanted, known) {
		f.Wanted = append(f.Wanted, wanted)
	}
}

// Changes is what became of a lock.
type Changes struct {
	// Added, Moved and Dropped are the charts, bases and files that are new, have another version, commit or digest
	// than before, or were removed.
	Added, Moved, Dropped []fmt.Stringer
}

// note adds an entry that is locked now, and was before or not.
func note[T interface {
	comparable
	fmt.Stringer
}](c *Changes, before *T, now T) {
	switch {
	case before == nil:
		c.Added = append(c.Added, now)
	case *before != now:
		c.Moved = append(c.Moved, now)
	}
}

// Archives checks that an archive holds the chart of a name and a version. A render.Pool does.
type Archives interface {
	CheckArchive(ctx context.Context, content []byte, name, version string) error
}

// Locker chooses the charts of locks.
type Locker struct {
	// Charts asks repositories, Archives checks what they have.
	Charts   *chart.Fetcher
	Archives Archives
	// Renew reports whether a locked chart gets the newest version of its range.
	Renew func(name string) bool
	// Keep leaves in the lock what is not among the wanted.
	Keep bool
}

// Lock returns the lock that has what is wanted. Charts that are locked already stay, unless they are renewed. The lock
// that comes with an error lacks what could not be resolved, but for what was locked before.
func (l Locker) Lock(ctx context.Context, f *File) (*v1alpha1.ChartLock, Changes, error) {
	var changes Changes
	var now v1alpha1.ChartLockSpec
	var errs []error
	for _, one := range f.Wanted {
		before := f.Old.Find(one.Repository, one.Name, one.Range)
		chosen, err := l.choose(ctx, one, before)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", one.Where, err))
			chosen = before
		}
		if chosen != nil {
			now.Charts = append(now.Charts, *chosen)
			note(&changes, before, *chosen)
		}
	}
	for _, one := range f.Bases {
		now.Bases = append(now.Bases, one.LockedBase)
		note(&changes, findBase(f.Old.Spec.Bases, one.LockedBase), one.LockedBase)
	}
	for _, one := range f.Files {
		now.Files = append(now.Files, one.LockedFile)
		note(&changes, f.Old.FindFile(one.URL), one.LockedFile)
	}
	l.addUnwanted(&now, f, &changes)
	return v1alpha1.NewChartLock(now), changes, errors.Join(errs...)
}

// choose returns the version of a chart to lock.
func (l Locker) choose(ctx context.Context, one Wanted, before *v1alpha1.LockedChart) (*v1alpha1.LockedChart, error) {
	if before != nil && !l.Renew(one.Name) && chart.InRange(before.Version, one.Range) {
		return before, nil
	}
	now, content, err := l.Charts.Resolve(ctx, one.Namespace, one.From, one.Name, one.Range)
	if err == nil {
		err = l.Archives.CheckArchive(ctx, content, now.Name, now.Version)
	}
	return &now, err
}

// addUnwanted keeps or drops what a lock has and nothing wants.
func (l Locker) addUnwanted(now *v1alpha1.ChartLockSpec, f *File, changes *Changes) {
	for _, one := range f.Old.Spec.Charts {
		if l.keeps(f.requestsLockedChart(one), one, changes) {
			now.Charts = append(now.Charts, one)
		}
	}
	for _, one := range f.Old.Spec.Bases {
		if l.keeps(findBase(now.Bases, one) != nil, one, changes) {
			now.Bases = append(now.Bases, one)
		}
	}
	for _, one := range f.Old.Spec.Files {
		wanted := slices.ContainsFunc(f.Files, func(file build.ResolvedFile) bool { return file.URL == one.URL })
		if l.keeps(wanted, one, changes) {
			now.Files = append(now.Files, one)
		}
	}
}

// keeps reports whether an entry is to be added to the new lock, and notes one that is dropped.
func (l Locker) keeps(wanted bool, one fmt.Stringer, changes *Changes) bool {
	if !wanted && !l.Keep {
		changes.Dropped = append(changes.Dropped, one)
	}
	return !wanted && l.Keep
}

// findBase returns the entry for the repository and ref of a base, nil if none exists.
func findBase(in []v1alpha1.LockedBase, wanted v1alpha1.LockedBase) *v1alpha1.LockedBase {
	i := slices.IndexFunc(in, func(one v1alpha1.LockedBase) bool {
		return cmp.Or(cmp.Compare(one.Repository, wanted.Repository), cmp.Compare(one.Ref, wanted.Ref)) == 0
	})
	if i < 0 {
		return nil
	}
	return &in[i]
}

// requestsLockedChart reports whether a locked chart is requested.
func (f *File) requestsLockedChart(locked v1alpha1.LockedChart) bool {
	lock := v1alpha1.NewChartLock(v1alpha1.ChartLockSpec{Charts: []v1alpha1.LockedChart{locked}})
	return slices.ContainsFunc(f.Wanted, func(w Wanted) bool { return lock.Find(w.Repository, w.Name, w.Range) != nil })
}
