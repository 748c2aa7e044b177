// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

func TestFetchLimits(t *testing.T) {
	server := gittest.New(t)
	cases := map[string]struct {
		limits git.Limits
		want   string
	}{
		"size of the fetched commit": {git.Limits{PackBytes: 100, Objects: 100, ObjectBytes: 1 << 20}, "fetching from"},
		"number of files and":        {git.Limits{PackBytes: 1 << 20, Objects: 3, ObjectBytes: 1 << 20}, "limit of 3"},
		"size of the largest file":   {git.Limits{PackBytes: 1 << 20, Objects: 100, ObjectBytes: 1000}, "limit of 1000"},
	}
	repository := server.Repository(t, "config")
	repository.Commit("first", map[string]string{"big": strings.Repeat("x", 5000), "b": "b", "c/d": "d"})
	for what, tc := range cases {
		_, err := mirror(t, t.TempDir(), repository.URL, tc.limits).Fetch(ctx, remote(t, repository.URL, nil), git.Ref{})
		if err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	// A server that can filter leaves the large file out, and only reading it is an error.
	limits := git.DefaultLimits()
	limits.FileBytes = 1000
	m := mirror(t, t.TempDir(), repository.URL, limits)
	commit, err := m.Fetch(ctx, remote(t, repository.URL, nil), git.Ref{})
	if err != nil || read(t, m, commit, "c/d") != "d" {
		t.Fatal(err)
	}
	_, err = tree.NewView(m.Tree(commit), tree.Limits{}).Read("big")
	var limit *tree.LimitError
	if !errors.As(err, &limit) {
		t.Errorf("got %v", err)
	}
}

// Sources that are much larger than manifests are refused before they fill memory or disk.
func TestHugeSources(t *testing.T) {
	server := gittest.New(t)
	// A file of zeros that is a thousand times smaller in the pack.
	large := server.Repository(t, "large")
	large.Git("config", "uploadpack.allowFilter", "false")
	large.Import("huge", 1, func(int) (string, int) { return "zeros", 100 << 20 })
	many := server.Repository(t, "many")
	many.Import("huge", 110_000, func(i int) (string, int) { return fmt.Sprintf("d%d/f%d", i/1000, i), i%3000 + 1 })
	for url, want := range map[string]string{
		large.URL: "size of the largest file of the fetched commit in bytes (104857600) is over the limit of 67108864",
		many.URL:  "is over the limit of 2000",
	} {
		limits := git.DefaultLimits()
		if url == many.URL {
			limits.Objects = 2000 // contents repeat, so there are some three thousand objects
		}
		dir := t.TempDir()
		_, err := mirror(t, dir, url, limits).Fetch(ctx, remote(t, url, nil), git.Ref{})
		var limit *tree.LimitError
		if !errors.As(err, &limit) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*", "objects", "pack", "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	// Few objects can still be many files: then the render that looks at them is refused.
	m := mirror(t, t.TempDir(), many.URL, git.DefaultLimits())
	commit, err := m.Fetch(ctx, remote(t, many.URL, nil), git.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	view := tree.NewView(m.Tree(commit), tree.Limits{Entries: 100_000})
	for i := 0; err == nil && i < 110; i++ {
		_, err = view.List(fmt.Sprint("d", i))
	}
	var limit *tree.LimitError
	if !errors.As(err, &limit) || limit.Limit != 100_000 {
		t.Errorf("got %v", err)
	}
}
