// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// build makes a tree from paths; a value that starts with "->" is a symbolic link.
func build(t *testing.T, files map[string]string) *tree.Tree {
	t.Helper()
	b := tree.NewBuilder(tree.Limits{})
	for name, content := range files {
		mode := tree.File
		if target, ok := strings.CutPrefix(content, "->"); ok {
			mode, content = tree.Link, target
		}
		if err := b.Add(name, mode, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

func TestLinks(t *testing.T) {
	view := tree.NewView(build(t, map[string]string{
		"a/file": "content", "b/link": "->../a/file", "c": "->a", "loop": "->loop", "d/e": "->../c/file",
		"out": "->../etc/passwd", "deep/out": "->../../etc/passwd", "abs": "->/etc/passwd", "gone": "->nothing",
		"dirout": "->..", "a/sub/up": "->../..", "zig": "->a/../../x",
	}), tree.Limits{})
	for name, want := range map[string]string{
		"a/file": "a/file", "b/link": "a/file", "c/file": "a/file", "d/e": "a/file", "/a/../a/file": "a/file", "a/sub/up/a/file": "a/file",
	} {
		info, err := view.Lookup(name)
		if err != nil || info.Path != want {
			t.Errorf("%s: got %q, %v", name, info.Path, err)
		}
	}
	for _, name := range []string{"out", "deep/out", "abs", "../x", "a/../../x", "dirout/x", "zig"} {
		if _, err := view.Read(name); !errors.Is(err, tree.ErrOutside) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := view.Read("gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("gone: %v", err)
	}
	if _, err := view.Read("loop"); err == nil || !strings.Contains(err.Error(), "symbolic links") {
		t.Errorf("loop: %v", err)
	}
}

func TestLimits(t *testing.T) {
	files := map[string]string{"big": strings.Repeat("x", 101)}
	for i := range 50 {
		files[fmt.Sprintf("many/%d", i)] = "0123456789"
	}
	source := build(t, files)
	cases := map[string]struct {
		limits tree.Limits
		do     func(*tree.View) error
	}{
		"size of big":        {tree.Limits{FileBytes: 100}, func(v *tree.View) error { _, err := v.Read("big"); return err }},
		"number of files in": {tree.Limits{Entries: 40}, func(v *tree.View) error { _, err := v.List("many"); return err }},
		"number of files that": {tree.Limits{Files: 2}, func(v *tree.View) error {
			return errors.Join(second(v.Read("many/1")), second(v.Read("many/2")), second(v.Read("many/2")), second(v.Read("many/3")))
		}},
		"sum of the bytes": {tree.Limits{TotalBytes: 15}, func(v *tree.View) error {
			return errors.Join(second(v.Read("many/1")), second(v.Read("many/2")))
		}},
	}
	for want, tc := range cases {
		err := tc.do(tree.NewView(source, tc.limits))
		var limit *tree.LimitError
		if !errors.As(err, &limit) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// TestAFileThatIsReadAgainCountsOnce: a render that is done again reads large files once more, and must not fail for that.
func TestAFileThatIsReadAgainCountsOnce(t *testing.T) {
	source := build(t, map[string]string{"a": "0123456789", "b": "0123456789", "link": "->a", "c": "012345"})
	view := tree.NewView(source, tree.Limits{TotalBytes: 25})
	beside := view.Beside(build(t, map[string]string{"a": "0123456789"}))
	if err := errors.Join(second(view.Read("a")), second(view.Read("b")), second(view.Read("a")), second(view.Read("link"))); err != nil {
		t.Fatal(err)
	}
	var limit *tree.LimitError
	if _, err := beside.Read("a"); !errors.As(err, &limit) {
		t.Errorf("a file of the same name in another tree: %v", err)
	}
	if _, err := view.Read("c"); !errors.As(err, &limit) {
		t.Errorf("one more file: %v", err)
	}
}

func second(_ []byte, err error) error { return err }

func TestAffected(t *testing.T) {
	files := map[string]string{
		"app/kustomization.yaml": "resources: [../base]", "base/a.yaml": "a", "other/b.yaml": "b", "link": "->base",
	}
	view := tree.NewView(build(t, files), tree.Limits{})
	for _, name := range []string{"app/kustomization.yaml", "base/a.yaml"} {
		if _, err := view.Read(name); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = view.Read("app/kustomization.yml")
	_, _ = view.List("base")
	_, _ = view.Lookup("link/a.yaml")

	text, err := json.Marshal(view.Record())
	if err != nil {
		t.Fatal(err)
	}
	var record tree.Record
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		change map[string]string
		want   string
	}{
		"nothing":               {nil, ""},
		"file elsewhere":        {map[string]string{"other/b.yaml": "changed", "other/c.yaml": "new"}, ""},
		"file that was read":    {map[string]string{"base/a.yaml": "changed"}, "base/a.yaml was changed"},
		"file that was missing": {map[string]string{"app/kustomization.yml": "x"}, "app/kustomization.yml was added"},
		"file removed":          {map[string]string{"app/kustomization.yaml": ""}, "app/kustomization.yaml was removed"},
		"file added to a list":  {map[string]string{"base/z.yaml": "x"}, "files were added to or removed from base"},
		"link moved":            {map[string]string{"link": "->other"}, "link/a.yaml was removed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			changed := map[string]string{}
			for k, v := range files {
				changed[k] = v
			}
			for k, v := range tc.change {
				changed[k] = v
				if v == "" {
					delete(changed, k)
				}
			}
			reason, affected := record.Affected(build(t, changed))
			if reason != tc.want || affected != (tc.want != "") {
				t.Errorf("got %q, %t", reason, affected)
			}
		})
	}
	if _, affected := (tree.Record{}).Affected(build(t, files)); !affected {
		t.Error("an empty record must be affected")
	}
}

func TestStandardLibraryFileSystem(t *testing.T) {
	source := build(t, map[string]string{"a/b/c.txt": "c", "a/d.txt": "d", "e": "e", "l": "->a/b"})
	if err := fstest.TestFS(tree.FS(tree.NewView(source, tree.Limits{})), "a/b/c.txt", "a/d.txt", "e", "l/c.txt"); err != nil {
		t.Error(err)
	}
}

// TestALinkThatLeadsOutsideFailsOnlyWhatReadsIt: the rest of its directory is listed and read.
func TestALinkThatLeadsOutsideFailsOnlyWhatReadsIt(t *testing.T) {
	view := tree.NewView(build(t, map[string]string{
		"a/file.yaml": "content", "a/out.yaml": "->../../etc/passwd", "a/absolute": "->/etc", "a/loop": "->loop", "a/nowhere": "->nothing", "a/sub": "->../b",
		"b/file": "content",
	}), tree.Limits{})
	list, err := view.List("a")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, info := range list {
		got[info.Path] = info.Dir
	}
	want := map[string]bool{"a/file.yaml": false, "a/out.yaml": false, "a/absolute": false, "a/loop": false, "a/sub": true}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for name, part := range map[string]string{"a/out.yaml": "a/out.yaml -> ../../etc/passwd", "a/absolute": "a/absolute -> /etc", "a/loop": "symbolic links"} {
		if _, err := view.Read(name); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := view.List(name); err == nil {
			t.Errorf("%s is listed", name)
		}
	}
}
