// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Contents are the files that a pipeline has published to a place.
type Contents struct {
	// Names are their paths on the branch, or in the artifact, sorted.
	Names []string

	read func(name string) ([]byte, error)
}

// ErrNoFile is the error about a file that a pipeline has not published.
var ErrNoFile = errors.New("the pipeline has published no such file")

// Read returns a file among Names; of others the error is [ErrNoFile].
func (c Contents) Read(name string) ([]byte, error) {
	if _, ok := slices.BinarySearch(c.Names, name); !ok {
		return nil, ErrNoFile
	}
	return c.read(name)
}

// Contents returns the files that a pipeline has published to an entry, at a revision of its status. Files of others
// beside them are left out. A commit that is in the mirror is read without asking the server.
func (t *Targets) Contents(
	ctx context.Context,
	p *v1alpha1.RenderPipeline,
	to v1alpha1.Publish,
	revision string,
) (Contents, error) {
	opened, err := t.Open(ctx, p.Metadata.Namespace, to)
	if err != nil {
		return Contents{}, err
	}
	var branch *Branch
	switch target := opened.(batchedTarget).Interface.(type) {
	case *pullTarget:
		branch = target.branch
	case *gitTarget:
		branch = target.branch
	default:
		held, err := opened.Current(ctx, p.Key(), nil)
		if err != nil {
			return Contents{}, err
		}
		read := func(name string) ([]byte, error) { return held.Files[name], nil }
		return Contents{Names: slices.Sorted(maps.Keys(held.Files)), read: read}, nil
	}
	return branch.contents(ctx, p.Key(), hashOf(revision), t.limits)
}

// contents reads the record of a pipeline in a commit. A mirror may have dropped a part of an old commit; then it is
// fetched again.
func (b *Branch) contents(
	ctx context.Context,
	pipeline string,
	commit git.Hash,
	limits tree.Limits,
) (Contents, error) {
	known, err := b.Mirror.Commit(commit)
	if err == nil {
		var found Contents
		if found, err = contentsOf(tree.NewView(b.Mirror.Tree(known), limits), pipeline); err == nil {
			return found, nil
		}
	}
	fetched, err := b.Mirror.Fetch(ctx, b.Remote, git.Ref{Commit: commit})
	if err != nil {
		return Contents{}, err
	}
	return contentsOf(tree.NewView(b.Mirror.Tree(fetched), limits), pipeline)
}

// contentsOf returns the files that the record of a pipeline names.
func contentsOf(files *tree.View, pipeline string) (Contents, error) {
	text, err := files.Read(recordFile(pipeline))
	if errors.Is(err, fs.ErrNotExist) {
		return Contents{}, nil
	}
	if err != nil {
		return Contents{}, fmt.Errorf("reading what is published: %w", err)
	}
	var record ownershipRecord
	if err := json.Unmarshal(text, &record); err != nil {
		return Contents{}, fmt.Errorf("reading %s of the branch: %w", recordFile(pipeline), err)
	}
	if record.Pipeline != pipeline {
		return Contents{}, nil
	}
	names := slices.Sorted(slices.Values(record.Files))
	return Contents{Names: slices.Compact(names), read: files.ReadOnce}, nil
}
