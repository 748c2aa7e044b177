// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/fault"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Revisions maps the mount paths of a pipeline's sources to their revisions, "" being spec.source. If a revision is
// missing or empty, the source itself determines it.
type Revisions map[string]string

// Complete reports whether a revision exists for each of the sources and for no others.
func (r Revisions) Complete(all []v1alpha1.NamedSource) bool {
	for _, one := range all {
		if r[one.MountPath] == "" {
			return false
		}
	}
	return len(r) == len(all)
}

// Mounted is a further source at one revision.
type Mounted struct {
	// MountPath is the directory in the tree where its files are.
	MountPath string
	// Snapshot of the source alone.
	Snapshot *Snapshot
}

// Revisions returns the revision of each source that the snapshot is made of.
func (s *Snapshot) Revisions() Revisions {
	out := Revisions{"": s.Revision}
	for _, one := range s.Mounted {
		out[one.MountPath] = one.Snapshot.Revision
	}
	return out
}

// SourceRevisions returns the revisions of the further sources, as shown in the status.
func (s *Snapshot) SourceRevisions() []v1alpha1.SourceRevision {
	var out []v1alpha1.SourceRevision
	for _, one := range s.Mounted {
		out = append(out, v1alpha1.SourceRevision{MountPath: one.MountPath, URL: one.Snapshot.URL, Revision: one.Snapshot.Revision})
	}
	return out
}

// FetchAll returns the sources of a pipeline as one snapshot: that of the first, with the files of the others below
// their mount paths. All are looked at at the same time, each with its own credentials, and an error names every one
// that failed. Resolved is when the first of them was looked at.
func FetchAll(ctx context.Context, from Interface, scope Scope, all []v1alpha1.NamedSource,
	revisions Revisions) (*Snapshot, error) {
	return CombineAll(all, func(one v1alpha1.NamedSource) (*Snapshot, error) {
		return from.Fetch(ctx, scope, one.Source, revisions[one.MountPath])
	}, false)
}

// CombineAll is FetchAll with a function that returns each source. With replace, files of the first source at a
// mount path are left out: a directory in its place may well hold a checkout at that path.
func CombineAll(all []v1alpha1.NamedSource, fetch func(v1alpha1.NamedSource) (*Snapshot, error), replace bool) (*Snapshot, error) {
	if len(all) == 1 {
		return fetch(all[0])
	}
	found := make([]*Snapshot, len(all))
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, one := range all {
		group.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					errs[i] = fault.Recovered(r)
				}
			}()
			if found[i], errs[i] = fetch(one); errs[i] != nil && one.MountPath != "" {
				errs[i] = fmt.Errorf("%s, the source at %s: %w", one.Field, one.MountPath, errs[i])
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return combineSnapshots(all, found, replace)
}

// combineSnapshots mounts all snapshots but the first in the first.
func combineSnapshots(all []v1alpha1.NamedSource, found []*Snapshot, replace bool) (*Snapshot, error) {
	combined := *found[0]
	trees := map[string]*tree.Tree{}
	for i, one := range found[1:] {
		at := all[i+1].MountPath
		trees[at] = one.Tree
		combined.Mounted = append(combined.Mounted, Mounted{MountPath: at, Snapshot: one})
		if one.Resolved.Before(combined.Resolved) {
			combined.Resolved = one.Resolved
		}
	}
	combined.Damaged = func() bool {
		damaged := false
		for _, one := range found {
			damaged = one.Damaged != nil && one.Damaged() || damaged
		}
		return damaged
	}
	var err error
	combined.Tree, err = tree.Combine(found[0].Tree, trees, replace)
	return &combined, err
}
