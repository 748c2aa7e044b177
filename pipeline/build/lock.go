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
	"github.com/prerig/prerig/pipeline/render/remotebase"
	"github.com/prerig/prerig/pipeline/source/chart"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// sourceLock is the lock of a source; it is empty if the source has none.
type sourceLock struct {
	*v1alpha1.ChartLock
	path   string
	exists bool
}

// describe names the lock in messages.
func (l *sourceLock) describe() string {
	if !l.exists {
		return "the source has no " + l.path + ", which"
	}
	return l.path
}

// readLock reads the lock once, when it is first needed: what is read is part of the record of a build.
func (f *remoteFetch) readLock() (*sourceLock, error) {
	if f.lock != nil {
		return f.lock, nil
	}
	at := f.p.Spec.Build.ChartLock
	content, err := f.view.Read(at)
	if errors.Is(err, fs.ErrNotExist) {
		f.lock = &sourceLock{&v1alpha1.ChartLock{}, at, false}
		return f.lock, nil
	}
	if err != nil {
		return nil, err
	}
	lock, err := v1alpha1.ParseChartLock(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	f.lock = &sourceLock{lock, at, true}
	return f.lock, nil
}

// LockMode is what becomes of what is locked when references are looked for. Servers are always asked for the rest.
type LockMode int

// The modes.
const (
	// KeepLocked uses it without asking.
	KeepLocked LockMode = iota
	// RenewLocked asks, and uses what the servers have now.
	RenewLocked
	// CompareLocked uses it, and notes what the servers have now.
	CompareLocked
)

// ResolvedBase is a remote base by a branch or tag, with the commit that is used.
type ResolvedBase struct {
	v1alpha1.LockedBase
	// Now is the commit that the server has, if it was asked; "" if it has no such ref. Tag reports whether the ref is a tag.
	Now string
	Tag bool
	// Err is why the server could not be asked.
	Err error
}

// ResolvedFile is a remote file, with the digest that is used.
type ResolvedFile struct {
	v1alpha1.LockedFile
	// Now is the digest that the server has, if it was asked; Err is why it could not be.
	Now string
	Err error
}

// References are what a pipeline needs from other servers.
type References struct {
	// Charts are charts of repositories.
	Charts []render.ChartReference
	// Bases and Files are those of kustomizations. Bases that are named by their commit are not among them.
	Bases []ResolvedBase
	Files []ResolvedFile
}

// resolution is what the references of a build resolve to.
type resolution struct {
	mode  LockMode
	bases []ResolvedBase
	files []ResolvedFile
}

// resolveBase returns the commit of a branch or tag. ask returns the one that the server has, or "".
func (r *resolution) resolveBase(locked *v1alpha1.LockedBase, base *remotebase.Base, ask func() (commit string, tag bool, err error)) (string, error) {
	found := ResolvedBase{LockedBase: v1alpha1.LockedBase{Repository: base.Address.String(), Ref: base.Ref}}
	same := func(one ResolvedBase) bool { return one.Repository == found.Repository && one.Ref == found.Ref }
	if i := slices.IndexFunc(r.bases, same); i >= 0 {
		return r.bases[i].Commit, nil
	}
	if locked != nil {
		found.Commit = locked.Commit
	}
	if locked == nil || r.mode != KeepLocked {
		found.Now, found.Tag, found.Err = ask()
	}
	if locked == nil || r.mode == RenewLocked {
		if found.Err != nil {
			return "", &FetchError{found.Err}
		}
		if found.Now == "" {
			return "", fmt.Errorf("the repository has no branch or tag %q", base.Ref)
		}
		found.Commit = found.Now
	}
	r.bases = append(r.bases, found)
	return found.Commit, nil
}

// resolveFile returns the content of a file. fetch returns what has a digest, or with "" what the server has.
func (r *resolution) resolveFile(locked *v1alpha1.LockedFile, url string, fetch func(digest string) ([]byte, error)) ([]byte, error) {
	found := ResolvedFile{LockedFile: v1alpha1.LockedFile{URL: url}}
	i := slices.IndexFunc(r.files, func(one ResolvedFile) bool { return one.URL == url })
	switch {
	case i >= 0:
		return fetch(r.files[i].Digest)
	case locked != nil && r.mode == KeepLocked:
		r.files = append(r.files, ResolvedFile{LockedFile: *locked})
		return fetch(locked.Digest)
	}
	content, err := fetch("")
	if err == nil {
		found.Now = chart.DigestOf(content)
		found.Digest = found.Now
	}
	if locked != nil && r.mode == CompareLocked {
		found.LockedFile, found.Err, err = *locked, err, nil
	}
	if err == nil {
		r.files = append(r.files, found)
	}
	return content, err
}

// FindReferences returns what a pipeline needs from other servers. Where the pipeline renders units or releases, it is built to find what they need, and
// again with what was found; what needs a chart that is not locked yet is not found.
func (b *Builder) FindReferences(ctx context.Context, p *v1alpha1.RenderPipeline, root *tree.Tree, mode LockMode) (*References, error) {
	limits, err := b.Limits.Lower(p.Spec.Build.Limits)
	if err != nil {
		return nil, err
	}
	view := tree.NewView(root, limits.Read)
	request := newRequest(p, limits, b.Alone)
	f, err := b.newRemoteFetch(p, view, &request)
	if err != nil {
		return nil, err
	}
	f.resolve = &resolution{mode: mode}
	if err := f.addNamedBases(ctx); err != nil {
		return nil, err
	}
	found := &References{}
	if found.Charts, err = f.findNamedCharts(ctx); err != nil {
		return nil, err
	}
	if request.Releases != nil || request.Flux != nil {
		err = f.discover(ctx, found)
	}
	found.Bases, found.Files = f.resolve.bases, f.resolve.files
	return found, err
}

// discover builds units and releases to find what they need.
func (f *remoteFetch) discover(ctx context.Context, found *References) error {
	f.request.Discover = true
	wanted, known := found.Charts, -1
	for range maxRounds {
		if err := f.addLockedCharts(ctx, wanted); err != nil {
			return err
		}
		now := len(f.request.Charts) + len(f.request.Bases)
		if now == known {
			return nil
		}
		known = now
		response, err := f.b.Renderer.Render(ctx, f.files, *f.request)
		if err != nil {
			return err
		}
		if err := f.addBases(ctx, response.WantedBases); err != nil {
			return err
		}
		if err := errorOfMissing(f.request.MissingBases); err != nil {
			return err
		}
		found.Charts, wanted = append(found.Charts, response.Wanted...), response.Wanted
	}
	return nil
}

// errorOfMissing returns why remote bases cannot be had, or nil: a lock would not be complete.
func errorOfMissing(missing []render.MissingBase) error {
	var errs []error
	for _, one := range missing {
		errs = append(errs, errors.New(one.Reason))
	}
	return errors.Join(errs...)
}
