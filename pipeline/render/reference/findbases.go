// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"errors"
	"fmt"
	"path"
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

// ErrNotAllowed is the cause of the error of a fetch for a repository that the pipeline does not allow.
var ErrNotAllowed = errors.New("its repository is not allowed")

// Fetch returns the files of a remote base at its commit. An error that is ErrNotAllowed or remotebase.ErrUnpinned
// means that the base is rejected, any other that it could not be fetched.
type Fetch func(ctx context.Context, base *remotebase.Base) (*tree.Tree, error)

// FindBases finds the remote bases of a build and fetches them before the render: it walks the kustomizations as
// kustomize would, and parses them as the renderer does. It returns the bases for the request and a reader with
// their files, which counts against the limits of the view. Kustomizations of the source are in the view's record;
// bases need none, since the file that names one contains its commit.
func FindBases(ctx context.Context, view *tree.View, request render.Request, fetch Fetch) ([]render.Base, tree.Reader, error) {
	f := &baseFinder{kustomizationSearch: newSearch(ctx, request), view: view, files: tree.NewMounts(view), fetch: fetch, bases: map[string]render.Base{}}
	kind, err := BuildType(view, request)
	if err != nil || kind != v1alpha1.BuildKustomize {
		return nil, view, err
	}
	start, err := view.Lookup(request.Path)
	if err != nil || !start.Dir {
		return nil, view, nil //nolint:nilerr // the renderer reports it
	}
	if err := f.findInDirectory(start.Path, render.Base{}); err != nil {
		return nil, nil, fmt.Errorf("building %s: %w", request.Path, err)
	}
	return f.found, f.files, nil
}

type baseFinder struct {
	kustomizationSearch
	view  *tree.View
	files *tree.Mounts
	fetch Fetch
	bases map[string]render.Base
	found []render.Base
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
	remote := f.newRemotesOf(k)
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

// newRemotesOf returns the entries that name remote bases not yet known, each base once, without their places in
// the document. It returns at most one more than the limit, so that exceeding it is reported.
func (f *baseFinder) newRemotesOf(k *File) []Entry {
	var out []Entry
	added := map[string]bool{}
	for _, e := range k.Remote {
		if _, known := f.bases[render.NewBase(k.In.Name, e.Value).Name]; known || added[e.Value] {
			continue
		}
		added[e.Value], e.Node = true, nil
		if out = append(out, e); len(out) > maxBases {
			break
		}
	}
	return out
}

// findRemote fetches a base and looks at its kustomization.
func (f *baseFinder) findRemote(k *File, e Entry) error {
	parsed, err := remotebase.Parse(e.Value)
	if err != nil {
		return k.RefuseRemote(e, fmt.Errorf("%w; or else copy it into the source", err))
	}
	base := render.NewBase(k.In.Name, e.Value)
	if _, known := f.bases[base.Name]; known {
		return f.enterBase(base, parsed)
	}
	if err := f.checkNesting(base); err != nil {
		return k.RefuseRemote(e, err)
	}
	files, err := f.fetch(f.ctx, parsed)
	switch {
	case errors.Is(err, ErrNotAllowed):
		return k.RefuseRemote(e, fmt.Errorf("%w: %s", err, AllowHint))
	case errors.Is(err, remotebase.ErrUnpinned):
		return k.RefuseRemote(e, err)
	case err != nil:
		return fmt.Errorf("%s:%d: %s: fetching the remote base %s: %w", k.Shown, e.Line, e.Field, remotebase.Redacted(e.Value), err)
	}
	f.bases[base.Name], f.found = base, append(f.found, base)
	f.files.Add(base.Name, f.view.Beside(files))
	return f.enterBase(base, parsed)
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
