// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"slices"
	"testing"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// TestChangedFiles: files, links and what is behind them, and a file in the place of a directory.
func TestChangedFiles(t *testing.T) {
	build := func(files map[string]string, links map[string]string) *tree.Tree {
		b := tree.NewBuilder(tree.Limits{})
		for name, text := range files {
			if err := b.Add(name, tree.File, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		for name, to := range links {
			if err := b.Add(name, tree.Link, []byte(to)); err != nil {
				t.Fatal(err)
			}
		}
		return b.Build()
	}
	links := map[string]string{"prod/base": "../base", "same": "base/a.yaml"}
	before := build(map[string]string{"base/a.yaml": "1", "base/b.yaml": "1", "kept/c.yaml": "1", "gone/deep/d.yaml": "1", "turned/e.yaml": "1"}, links)
	after := build(map[string]string{"base/a.yaml": "2", "base/b.yaml": "1", "kept/c.yaml": "1", "new/f.yaml": "1", "turned": "1"}, links)
	got, err := tree.ChangedFiles(before, after)
	want := []string{"base/a.yaml", "gone/deep/d.yaml", "new/f.yaml", "prod/base/a.yaml", "same", "turned", "turned/e.yaml"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
