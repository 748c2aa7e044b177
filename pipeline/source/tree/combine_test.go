// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// combine is tree.Combine of trees that must fit.
func combine(t *testing.T, base map[string]string, sources map[string]map[string]string) *tree.Tree {
	t.Helper()
	trees := map[string]*tree.Tree{}
	for at, files := range sources {
		trees[at] = build(t, files)
	}
	c, err := tree.Combine(build(t, base), trees, false)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCombine reads a tree with others in it as it would be read if all of it was one.
func TestCombine(t *testing.T) {
	c := combine(t, map[string]string{"apps/k": "app", "deploy/own": "own"}, map[string]map[string]string{
		"deploy/values": {"prod.yaml": "prod", "sub/link": "->../prod.yaml"}, "a/b/c": {"x": "x"},
	})
	whole := build(t, map[string]string{
		"apps/k": "app", "deploy/own": "own", "deploy/values/prod.yaml": "prod", "deploy/values/sub/link": "->../prod.yaml", "a/b/c/x": "x",
	})
	got, want := tree.NewView(c, tree.Limits{}), tree.NewView(whole, tree.Limits{})
	for _, name := range []string{
		"apps/k", "deploy/own", "deploy/values/prod.yaml", "deploy/values/sub/link", "a/b/c/x", "deploy/values/../own", "apps/../a/b/c/x",
		"deploy/values", "a", "a/b/none", "none", "deploy/values/none", ".", "..",
	} {
		text, err := got.Read(name)
		wanted, wantErr := want.Read(name)
		if string(text) != string(wanted) || (err == nil) != (wantErr == nil) || errors.Is(err, fs.ErrNotExist) != errors.Is(wantErr, fs.ErrNotExist) {
			t.Errorf("%s: got %q, %v; want %q, %v", name, text, err, wanted, wantErr)
		}
		list, err := got.List(name)
		wantedList, wantErr := want.List(name)
		if !slices.Equal(list, wantedList) || (err == nil) != (wantErr == nil) {
			t.Errorf("list of %s: got %v, %v; want %v, %v", name, list, err, wantedList, wantErr)
		}
		info, err := got.Lookup(name)
		wantedInfo, wantErr := want.Lookup(name)
		if info != wantedInfo || (err == nil) != (wantErr == nil) {
			t.Errorf("lookup of %s: got %v, %v; want %v, %v", name, info, err, wantedInfo, wantErr)
		}
	}
	for name, want := range map[string]string{
		"deploy/values/prod.yaml": "deploy/values", "deploy/values": "deploy/values", "deploy/valuesx": "", "deploy": "", "/a/b/c/../c/x": "a/b/c",
	} {
		if got := c.SourceOf(name); got != want {
			t.Errorf("%s is of the source at %q, want %q", name, got, want)
		}
	}
}

// TestCombinedLinksStayInTheirSource has links of each source lead into another one, and out and back in.
func TestCombinedLinksStayInTheirSource(t *testing.T) {
	c := combine(t, map[string]string{
		"secret": "of the tree", "into": "->platform/x", "dir": "->platform", "over": "->platform/../secret", "here": "->.", "sub/up": "->..", "fine": "->sub/../secret",
		"nested": "->into",
	}, map[string]map[string]string{
		"platform": {"x": "x", "up": "->../secret", "updir": "->..", "across": "->../other/y", "back": "->../platform/x", "down/fine": "->../x", "abs": "->/x"},
		"other":    {"y": "y", "deep/z": "->../../platform/x"},
	})
	view := tree.NewView(c, tree.Limits{})
	for _, name := range []string{
		"into", "dir/x", "over", "nested", "platform/up", "platform/updir/secret", "platform/across", "platform/back", "platform/abs", "other/deep/z",
	} {
		if _, err := view.Read(name); !errors.Is(err, tree.ErrOutside) || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// What the reader names is not what a link says.
	for _, name := range []string{"fine", "here/platform/x", "here/secret", "sub/up/other/y", "platform/down/fine"} {
		if _, err := view.Read(name); err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestCombineTells has records say what changed in which source, and trees be equal where all of their sources are.
func TestCombineTells(t *testing.T) {
	base, values := map[string]string{"a": "1", "b": "1"}, map[string]string{"v": "1", "w": "1"}
	first := combine(t, base, map[string]map[string]string{"values": values})
	view := tree.NewView(first, tree.Limits{})
	for _, name := range []string{"a", "values/v", "values/missing"} {
		_, _ = view.Read(name)
	}
	record := view.Record()
	for _, access := range record {
		if want := map[bool]string{true: "values"}[strings.HasPrefix(access.Path, "values/")]; access.Source != want {
			t.Errorf("%s is of the source %q, want %q", access.Path, access.Source, want)
		}
	}
	for _, tc := range []struct {
		source, file, text, reason string
	}{
		{"", "a", "2", "a was changed"}, {"", "b", "2", ""}, {"values", "v", "2", "values/v was changed"}, {"values", "w", "2", ""},
		{"values", "missing", "new", "values/missing was added"}, {"values", "v", "", "values/v was removed"},
	} {
		own, other := map[string]string{"a": "1", "b": "1"}, map[string]string{"v": "1", "w": "1"}
		files := own
		if tc.source != "" {
			files = other
		}
		files[tc.file] = tc.text
		if tc.text == "" {
			delete(files, tc.file)
		}
		now := combine(t, own, map[string]map[string]string{"values": other})
		reason, affected, footprint := record.Look(now)
		if reason != tc.reason || affected != (tc.reason != "") || footprint != nil {
			t.Errorf("%s/%s: got %q, %t", tc.source, tc.file, reason, affected)
		}
		if now.ID() == first.ID() {
			t.Errorf("%s/%s: the trees have the same ID", tc.source, tc.file)
		}
	}
	if again := combine(t, base, map[string]map[string]string{"values": values}); again.ID() != first.ID() {
		t.Error("trees of the same sources have other IDs")
	}
	if moved := combine(t, base, map[string]map[string]string{"other": values}); moved.ID() == first.ID() {
		t.Error("a source that is elsewhere does not change the ID")
	}
}

// TestCombineOccupied mounts where the tree has something, of any kind and also on the way there.
func TestCombineOccupied(t *testing.T) {
	base := build(t, map[string]string{"file": "x", "dir/y": "y", "link": "->dir", "gone": "->nothing"})
	from := build(t, map[string]string{"z": "z"})
	for _, at := range []string{"file", "dir", "link", "gone", "dir/y", "file/z", "link/new", "gone/new"} {
		if _, err := tree.Combine(base, map[string]*tree.Tree{at: from}, false); !errors.Is(err, tree.ErrOccupied) || !strings.Contains(err.Error(), at) {
			t.Errorf("%s: got %v", at, err)
		}
	}
	replaced, err := tree.Combine(base, map[string]*tree.Tree{"dir": from}, true)
	if err != nil {
		t.Fatal(err)
	}
	list, err := tree.NewView(replaced, tree.Limits{}).List("dir")
	if err != nil || len(list) != 1 || list[0].Path != "dir/z" {
		t.Errorf("got %v, %v", list, err)
	}
}
