// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"testing"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// directories are Objects of directories that hold one another, which count how often each is read.
type directories struct {
	entries map[string][]tree.Entry
	reads   map[string]int
}

func (d directories) Tree(id string) ([]tree.Entry, error) {
	d.reads[id]++
	return d.entries[id], nil
}

func (directories) Blob(id string, _ int64) ([]byte, error) { return []byte(id), nil }

func TestNextReadsOnlyWhatIsNew(t *testing.T) {
	dir := func(name, id string) tree.Entry { return tree.Entry{Name: name, ID: id, Mode: tree.Dir} }
	file := func(id string) []tree.Entry { return []tree.Entry{{Name: "f", ID: id, Mode: tree.File}} }
	d := directories{reads: map[string]int{}, entries: map[string][]tree.Entry{
		"root1": {dir("a", "a1"), dir("b", "b1")}, "root2": {dir("a", "a1"), dir("b", "b2")},
		"a1": file("x"), "b1": file("y"), "b2": file("z"),
	}}
	content := func(of *tree.Tree) string {
		t.Helper()
		view, out := tree.NewView(of, tree.Limits{}), ""
		for _, name := range []string{"a/f", "b/f"} {
			text, err := view.Read(name)
			if err != nil {
				t.Fatal(err)
			}
			out += string(text)
		}
		return out
	}
	first := tree.New(d, "root1")
	if got := content(first); got != "xy" {
		t.Errorf("the first revision holds %s", got)
	}
	second := first.Next("root2")
	if got := content(second); got != "xz" {
		t.Errorf("the second revision holds %s", got)
	}
	if got := content(second.Next("root1")); got != "xy" {
		t.Errorf("the first revision again holds %s", got)
	}
	// b1 and root1 are read again: a revision knows of the one before it only.
	if got, want := fmt.Sprint(d.reads), "map[a1:1 b1:2 b2:1 root1:2 root2:1]"; got != want {
		t.Errorf("reads are %s, want %s", got, want)
	}
}
