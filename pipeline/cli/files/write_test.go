// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readAll reads what args name.
func readAll(t *testing.T, stdin io.Reader, args ...string) ([]Input, Listing) {
	t.Helper()
	var ins []Input
	listing, err := Read(t.Context(), args, Options{Stdin: stdin}, func(in Input) { ins = append(ins, in) })
	must(t, err)
	return ins, listing
}

// tree makes files with their own name as the content.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(name+"\n"), 0o644))
	}
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestReadDirectory(t *testing.T) {
	t.Parallel()
	dir := tree(t, "b.yaml", "a.yml", "c/d.json", "c/readme.md", "C.YAML", ".git/x.yaml", ".hidden.yaml", "e/f/g.yaml", "e.txt")
	must(t, os.Symlink("b.yaml", filepath.Join(dir, "z.yaml")))
	must(t, os.Symlink("..", filepath.Join(dir, "c", "loop.yaml")))
	ins, listing := readAll(t, strings.NewReader("from a pipe"), dir, filepath.Join(dir, "b.yaml"), "-", "-")
	if len(listing.Errors) > 0 {
		t.Fatal(listing.Errors)
	}
	var got [][2]string
	for _, in := range ins {
		got = append(got, [2]string{in.Rel, string(in.Data)})
	}
	want := [][2]string{
		{"C.YAML", "C.YAML\n"}, {"a.yml", "a.yml\n"}, {"b.yaml", "b.yaml\n"}, {"c/d.json", "c/d.json\n"},
		{"e/f/g.yaml", "e/f/g.yaml\n"}, {"stdin", "from a pipe"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestReadNamesEveryError(t *testing.T) {
	t.Parallel()
	dir := tree(t, "empty/readme.md", "ok.yaml")
	must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling.yaml")))
	ins, listing := readAll(t, nil, filepath.Join(dir, "missing.yaml"), filepath.Join(dir, "empty"), filepath.Join(dir, "dangling.yaml"), filepath.Join(dir, "ok.yaml"))
	if len(ins) != 1 {
		t.Errorf("read %d files, want the good one", len(ins))
	}
	err := errors.Join(listing.Errors...)
	if err == nil {
		t.Fatal("no error")
	}
	want := strings.Join([]string{
		"reading DIR/missing.yaml: no such file or directory",
		"reading DIR/empty: the directory has no .yaml, .yml or .json file",
		"reading DIR/dangling.yaml: no such file or directory",
	}, "\n")
	if d := cmp.Diff(want, strings.ReplaceAll(err.Error(), dir, "DIR")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestWriteInPlaceKeepsModeAndLinks(t *testing.T) {
	t.Parallel()
	dir := tree(t, "real/a.yaml", "b.yaml")
	must(t, os.Chmod(filepath.Join(dir, "real/a.yaml"), 0o640))
	link := filepath.Join(dir, "link.yaml")
	must(t, os.Symlink("real/a.yaml", link))
	write(t, dir, "link.yaml", "b.yaml")
	if got := read(t, filepath.Join(dir, "real/a.yaml")); got != "new link.yaml" {
		t.Errorf("the file behind the link has %q", got)
	}
	if dest, err := os.Readlink(link); err != nil || dest != "real/a.yaml" {
		t.Errorf("the link is gone: %q, %v", dest, err)
	}
	info, err := os.Stat(filepath.Join(dir, "real/a.yaml"))
	must(t, err)
	if info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
	onlyFiles(t, dir, "b.yaml", "link.yaml", "real")
	onlyFiles(t, filepath.Join(dir, "real"), "a.yaml")
}

func TestInPlaceRefuses(t *testing.T) {
	t.Parallel()
	dir := tree(t, "ro.yaml")
	must(t, os.Chmod(filepath.Join(dir, "ro.yaml"), 0o444))
	ins, _ := readAll(t, strings.NewReader("x"), filepath.Join(dir, "ro.yaml"), "-")
	for i, want := range []string{"ro.yaml in place: the file is read-only (mode 0444)", "standard input is not a file"} {
		if _, err := InPlace(ins[i], nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("InPlace(%s): %v, want %q", ins[i].Path, err, want)
		}
	}
}

func TestWriteNothingWhenOneFails(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(t *testing.T, dir string) string{
		"a file changed meanwhile": func(t *testing.T, dir string) string {
			must(t, os.WriteFile(filepath.Join(dir, "b.yaml"), []byte("someone else's"), 0o644))
			return "the file changed during the run"
		},
		"a file became a directory": func(t *testing.T, dir string) string {
			must(t, os.Remove(filepath.Join(dir, "b.yaml")))
			must(t, os.Mkdir(filepath.Join(dir, "b.yaml"), 0o755))
			return "the file changed"
		},
		"a directory is gone": func(t *testing.T, dir string) string {
			must(t, os.RemoveAll(filepath.Join(dir, "c")))
			return "no such file or directory; nothing was written"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, "a.yaml", "b.yaml", "c/d.yaml")
			outs := outputs(t, dir, "a.yaml", "b.yaml", "c/d.yaml")
			want := harm(t, dir)
			err := Write(t.Context(), outs, nil)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
			if got := read(t, filepath.Join(dir, "a.yaml")); got != "a.yaml\n" {
				t.Errorf("a.yaml has %q", got)
			}
			names, err := filepath.Glob(filepath.Join(dir, ".*"))
			must(t, err)
			if len(names) > 0 {
				t.Errorf("left behind: %v", names)
			}
		})
	}
}

func TestWriteStopsWhenCancelled(t *testing.T) {
	t.Parallel()
	dir := tree(t, "a.yaml")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Write(ctx, outputs(t, dir, "a.yaml"), nil); err == nil || !strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("error %v", err)
	}
	if got := read(t, filepath.Join(dir, "a.yaml")); got != "a.yaml\n" {
		t.Errorf("a.yaml has %q", got)
	}
}

func TestTo(t *testing.T) {
	t.Parallel()
	dir := tree(t, "old.yaml")
	for _, name := range []string{"old.yaml", "new.yaml", "deep/er/new.yaml"} {
		out, err := To(filepath.Join(dir, name), []byte("new"))
		must(t, err)
		must(t, Write(t.Context(), []Output{out}, nil))
		if got := read(t, filepath.Join(dir, name)); got != "new" {
			t.Errorf("%s has %q", name, got)
		}
	}
	if _, err := To(dir, nil); err == nil || !strings.Contains(err.Error(), "it is a directory") {
		t.Errorf("To(directory): %v", err)
	}
	out, err := To(os.DevNull, []byte("x"))
	must(t, err)
	must(t, Write(t.Context(), []Output{out}, nil))
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s was replaced: %v, %v", os.DevNull, info.Mode(), err)
	}
}

func outputs(t *testing.T, dir string, names ...string) []Output {
	t.Helper()
	var outs []Output
	for _, name := range names {
		ins, _ := readAll(t, nil, filepath.Join(dir, name))
		out, err := InPlace(ins[0], []byte("new "+name))
		must(t, err)
		outs = append(outs, out)
	}
	return outs
}

func write(t *testing.T, dir string, names ...string) {
	t.Helper()
	must(t, Write(t.Context(), outputs(t, dir, names...), nil))
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

func onlyFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	es, err := os.ReadDir(dir)
	must(t, err)
	var got []string
	for _, e := range es {
		got = append(got, e.Name())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("files in %s (-want +got):\n%s", dir, d)
	}
}
