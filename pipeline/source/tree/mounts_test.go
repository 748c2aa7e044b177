// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/source/tree"
)

func TestMounts(t *testing.T) {
	source := build(t, map[string]string{"a/f": "of the source", "up": "->a/../.m/f"})
	other := build(t, map[string]string{"f": "of the other", "d/g": "deep", "out": "->../a/f", "in": "->d/g"})
	view := tree.NewView(source, tree.Limits{Files: 3})
	mounts := tree.NewMounts(view)
	mounts.Add(".m", view.Beside(other))
	for name, want := range map[string]string{"a/f": "of the source", "/.m/f": "of the other", ".m/in": "deep"} {
		if got, err := mounts.Read(name); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	info, err := mounts.Lookup(".m/in")
	if diff := cmp.Diff(tree.Info{Path: ".m/d/g"}, info); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if info, err = mounts.Lookup(".m"); err != nil || info.Path != ".m" || !info.Dir {
		t.Errorf("got %v, %v", info, err)
	}
	list, err := mounts.List("/.m/d")
	if diff := cmp.Diff([]tree.Info{{Path: ".m/d/g"}}, list); err != nil || diff != "" {
		t.Error(err, diff)
	}
	// The root does not show it, and no way leads from one to the other.
	if list, err = mounts.List(""); err != nil || len(list) != 1 || list[0].Path != "a" {
		t.Errorf("got %v, %v", list, err)
	}
	for name, want := range map[string]error{"up": fs.ErrNotExist, "a/../.m/f": fs.ErrNotExist, ".m/../a/f": tree.ErrOutside, ".m/out": tree.ErrOutside, ".m/none": fs.ErrNotExist} {
		if _, err := mounts.Lookup(name); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	for _, access := range view.Record() {
		if access.Path == ".m" || access.Path == ".m/f" || access.Path == ".m/in" {
			t.Errorf("the record has %v", access)
		}
	}
	// Both take from the same limits: three files were read.
	var limit *tree.LimitError
	if _, err := mounts.Read(".m/d/g"); err != nil {
		t.Errorf("a file that was read before is no new one: %v", err)
	}
	more := build(t, map[string]string{"x": "one more"})
	mounts.Add(".n", view.Beside(more))
	if _, err := mounts.Read(".n/x"); !errors.As(err, &limit) {
		t.Errorf("got %v", err)
	}
}
