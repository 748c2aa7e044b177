// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/remotebase"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Bounds of what is looked for beforehand.
const (
	maxKustomizations = 5000    // that are read
	maxKustomization  = 1 << 20 // bytes of one
	maxValues         = 100_000 // of one, aliases expanded
	maxEntries        = 500_000 // that name files or directories, of all: each look is in the record
	maxBases          = 200     // mentions of remote bases
	maxNested         = 10      // remote bases one below the other
)

// AllowHint describes what users can do about a remote base that is not fetched.
const AllowHint = "copy it into the source, or have the pipeline allow its repository (spec.build.remoteBases)"

// LockHint describes how to add missing entries to a lock.
const LockHint = "run prerig lock and commit what it writes"

// UnlockedChart describes why a chart cannot be had from a source without a lock.
func UnlockedChart(chart render.ChartReference, lock string) string {
	return fmt.Sprintf("the chart %s of %s is not locked, as there is no %s in the source; %s", chart.Name, chart.Repository, lock, LockHint)
}

// ErrNotAllowed is the cause of the error of a fetch for a repository that the pipeline does not allow.
var ErrNotAllowed = errors.New("its repository is not allowed")

// Fetched are the files of a remote base, or a remote file in the name render.BaseFile.
type Fetched struct {
	Files *tree.Tree
	// Locked is that of render.Base.
	Locked string
}

// Fetch returns the files of a remote base, parsed from the entry of a kustomization, or a remote file, for which the base is nil. An
// error that is ErrNotAllowed or remotebase.ErrUnpinned means that it is rejected, any other that it could not be fetched.
type Fetch func(ctx context.Context, entry string, base *remotebase.Base) (Fetched, error)

// FindBases finds the remote bases and files of a build and fetches them before the render: it walks the kustomizations as
// kustomize would, and parses them as the renderer does. It returns the bases for the request and a reader with
// their files, which counts against the limits of the view. Kustomizations of the source are in the view's record;
// bases need none, since the file that names one contains its commit, or the lock does.
func FindBases(ctx context.Context, view *tree.View, request render.Request, fetch Fetch) ([]render.Base, tree.Reader, error) {
	kind, err := BuildType(view, request)
	if err != nil || kind != v1alpha1.BuildKustomize {
		return nil, view, err
	}
	files := tree.NewMounts(view)
	f := newBaseFinder(ctx, files, request)
	f.open = func(k *File, e Entry, base render.Base, parsed *remotebase.Base) (bool, error) {
		fetched, err := fetch(ctx, e.Value, parsed)
		if err != nil && f.lenient && ctx.Err() == nil {
			return false, nil // the renderer leaves it out
		}
		if err != nil {
			return false, RefuseFetch(k.where(e), e.Value, err)
		}
		base.Locked = fetched.Locked
		f.bases[base.Name], f.found = base, append(f.found, base)
		files.Add(base.Name, view.Beside(fetched.Files))
		return true, nil
	}
	start, err := view.Lookup(request.Path)
	if err != nil || !start.Dir {
		return nil, view, nil //nolint:nilerr // the renderer reports it
	}
	if err := f.findInDirectory(start.Path, render.Base{}); err != nil {
		return nil, nil, fmt.Errorf("building %s: %w", request.Path, err)
	}
	return f.found, files, nil
}

// FindUnfetched returns the remote bases and files that a kustomization of a directory needs beside those of the request. What cannot
// be had is an error.
func FindUnfetched(ctx context.Context, files tree.Reader, request render.Request, dir string) ([]render.WantedBase, error) {
	f := newBaseFinder(ctx, files, request)
	for _, base := range request.Bases {
		f.bases[base.Name] = base
	}
	var wanted []render.WantedBase
	f.open = func(k *File, e Entry, base render.Base, _ *remotebase.Base) (bool, error) {
		i := slices.IndexFunc(request.MissingBases, func(one render.MissingBase) bool { return one.Name == base.Name })
		if i >= 0 && f.lenient {
			return false, nil
		}
		if i >= 0 {
			return false, errors.New(request.MissingBases[i].Reason)
		}
		f.found = append(f.found, base)
		wanted = append(wanted, render.WantedBase{Base: base, Where: k.where(e)})
		return false, nil
	}
	return wanted, f.findInDirectory(dir, render.Base{})
}

// RefuseFetch returns the error about an entry, at a file and line, that could not be fetched.
func RefuseFetch(where, entry string, err error) error {
	switch {
	case errors.Is(err, ErrNotAllowed):
		err = fmt.Errorf("%w: %s", err, AllowHint)
	case errors.Is(err, remotebase.ErrUnpinned):
	default:
		return fmt.Errorf("%s: fetching the remote base %s: %w", where, remotebase.Redacted(entry), err)
	}
	return fmt.Errorf("%s: %s is remote, and %w", where, remotebase.Redacted(entry), err)
}

type baseFinder struct {
	kustomizationSearch
	files tree.Reader
	// open makes the files of a base that is not known yet available, and reports whether they are.
	open  func(k *File, e Entry, base render.Base, parsed *remotebase.Base) (bool, error)
	bases map[string]render.Base
	found []render.Base
}

func newBaseFinder(ctx context.Context, files tree.Reader, request render.Request) *baseFinder {
	return &baseFinder{kustomizationSearch: newSearch(ctx, request), files: files, bases: map[string]render.Base{}}
}

// findInDirectory looks at the kustomization of a directory that is in a base, or in the source.
func (f *baseFinder) findInDirectory(dir string, in render.Base) error {
	if isNew, err := f.beginDirectory(dir); err != nil || !isNew {
		return err
	}
	for _, name := range KustomizationNames() {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		at := path.Join(dir, name)
		content, err := f.files.Read(at)
		if err != nil {
			continue // the renderer reports it if it gets to it
		}
		k, err := f.parseBoundedKustomization(at, in, content)
		if err != nil {
			return err
		}
		if k == nil {
			continue
		}
		if err := f.followEntries(k); err != nil {
			return err
		}
	}
	return nil
}

// followEntries follows the entries of a kustomization, releasing its document first.
func (f *baseFinder) followEntries(k *File) error {
	local, err := f.directoriesOf(k.Local, func(e Entry) string {
		info, err := f.files.Lookup(path.Join(path.Dir(k.Path), e.Value))
		if err != nil || !info.Dir {
			return ""
		}
		return info.Path
	})
	if err != nil {
		return err
	}
	remote := f.remotesOf(k)
	k.dropDocument()
	for _, dir := range local {
		if err := f.findInDirectory(dir.Value(), k.In); err != nil {
			return err
		}
	}
	for _, e := range remote {
		if err := f.findRemote(k, e); err != nil {
			return err
		}
	}
	return nil
}

// remotesOf returns the entries that name remote bases, each base once, without their places in the document. It returns at most one more than the limit, so that exceeding it is reported.
func (f *baseFinder) remotesOf(k *File) []Entry {
	var out []Entry
	added := map[string]bool{}
	for _, e := range k.Remote {
		if added[e.Value] {
			continue
		}
		added[e.Value], e.Node = true, nil
		if out = append(out, e); len(out) > maxBases {
			break
		}
	}
	return out
}

// findRemote makes a base available and looks at its kustomization.
func (f *baseFinder) findRemote(k *File, e Entry) error {
	var parsed *remotebase.Base
	if !remotebase.IsFile(e.Value) {
		var err error
		if parsed, err = remotebase.Parse(e.Value); err != nil && f.lenient {
			return nil
		}
		if err != nil {
			return k.RefuseRemote(e, fmt.Errorf("%w; or else copy it into the source", err))
		}
	}
	base := render.NewBase(k.In.Name, e.Value)
	if _, known := f.bases[base.Name]; !known {
		if err := f.checkNesting(base); err != nil && f.lenient {
			return nil
		} else if err != nil {
			return k.RefuseRemote(e, err)
		}
		if ok, err := f.open(k, e, base, parsed); err != nil || !ok {
			return err
		}
	}
	if parsed == nil {
		return nil
	}
	return f.enterBase(f.bases[base.Name], parsed)
}

func (f *baseFinder) enterBase(base render.Base, parsed *remotebase.Base) error {
	info, err := f.files.Lookup(path.Join(base.Name, parsed.Directory))
	if err != nil || !info.Dir {
		return nil //nolint:nilerr // the renderer reports it
	}
	return f.findInDirectory(info.Path, base)
}

// checkNesting bounds bases of bases, and rejects what kustomize treats as a cycle: a URL that is a prefix of one
// of those above.
func (f *baseFinder) checkNesting(base render.Base) error {
	if len(f.found) >= maxBases {
		return &tree.LimitError{What: "the number of remote bases", Limit: maxBases}
	}
	depth := 0
	for above, ok := f.bases[base.In]; ok; above, ok = f.bases[above.In] {
		if strings.HasPrefix(above.URL, base.URL) {
			return errors.New("it is below itself: a cycle")
		}
		if depth++; depth >= maxNested {
			return &tree.LimitError{What: "the number of remote bases one below the other", Limit: maxNested}
		}
	}
	return nil
}
