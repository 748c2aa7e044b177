// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// TestCases runs the command line of every directory below testdata/cases: args (one line, split at blanks) in a directory with
// the files of in, with stdin. The result is code, stdout, stderr, and in after the files that are new or changed.
//
// The command runs in the process, in a directory of its own, so the cases run one after the other. The files of testdata/shared are there for every case.
func TestCases(t *testing.T) {
	root, err := filepath.Abs("testdata") // the cases change the directory
	must(t, err)
	dirs, err := filepath.Glob(filepath.Join(root, "cases", "*"))
	must(t, err)
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			got := play(t, dir)
			golden := filepath.Join(dir, "want")
			if *update {
				must(t, os.RemoveAll(golden))
				for name, text := range got {
					path := filepath.Join(golden, name)
					must(t, os.MkdirAll(filepath.Dir(path), 0o755))
					must(t, os.WriteFile(path, []byte(text), 0o644))
				}
			}
			if d := cmp.Diff(tree(t, golden), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// play runs one case and gives what came of it by file name.
func play(t *testing.T, dir string) map[string]string {
	t.Helper()
	args, err := os.ReadFile(filepath.Join(dir, "args"))
	must(t, err)
	stdin, err := os.ReadFile(filepath.Join(dir, "stdin"))
	must(t, ignore(err, fs.ErrNotExist))
	work := t.TempDir()
	before := map[string]string{}
	// The files that many cases share, and then their own.
	for _, from := range []string{filepath.Join(dir, "../../shared"), filepath.Join(dir, "in")} {
		for name, text := range tree(t, from) {
			before[name] = text
			path := filepath.Join(work, name)
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
	t.Chdir(work)
	code, stdout, stderr := command(t, string(stdin), strings.Fields(string(args))...)

	got := map[string]string{"code": fmt.Sprintln(code)}
	if stdout != "" {
		got["stdout"] = stdout
	}
	if stderr != "" {
		got["stderr"] = stderr
	}
	after := tree(t, work)
	for name, text := range after {
		if old, ok := before[name]; !ok || old != text {
			got["after/"+name] = text
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
	return got
}

// command runs one command line in the current directory.
func command(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	streams := Streams{In: strings.NewReader(stdin), Out: &out, Err: &err}
	code = Main(t.Context(), args, streams, "v0.0.0-test")
	return code, out.String(), err.String()
}

// tree reads all files below a directory.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		files[filepath.ToSlash(rel)] = string(b)
		return err
	})
	must(t, ignore(err, fs.ErrNotExist))
	return files
}

// ignore drops one kind of error.
func ignore(err, kind error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
