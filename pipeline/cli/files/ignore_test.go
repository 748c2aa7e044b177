// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readNames returns the paths that Read reads below a directory.
func readNames(t *testing.T, dir string, exclude ...string) []string {
	t.Helper()
	var names []string
	_, err := Read(t.Context(), []string{dir}, Options{Exclude: exclude}, func(in Input) { names = append(names, filepath.ToSlash(in.Rel)) })
	must(t, err)
	return names
}

func TestIgnoreFilesHoldForSubdirectories(t *testing.T) {
	t.Parallel()
	dir := tree(t, "a.yaml", "keep.yaml", "old/b.yaml", "sub/c.yaml", "sub/keep.yaml", "sub/deep/d.yaml", "sub/gone/e.yaml", "test/f.yaml", "test/g.json")
	must(t, os.WriteFile(filepath.Join(dir, IgnoreName), []byte("# nothing old\n/old/\na.yaml\ntest/*\n!test/*.json\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "sub", IgnoreName), []byte("*.yaml\r\n!keep.yaml\r\ngone\r\n"), 0o644))
	if d := cmp.Diff([]string{"keep.yaml", "sub/keep.yaml", "test/g.json"}, readNames(t, dir)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"keep.yaml", "sub/deep/d.yaml", "sub/keep.yaml"}, readNames(t, dir, "test", "!sub/deep/d.yaml")); d != "" {
		t.Errorf("with --exclude (-want +got):\n%s", d)
	}
}

func TestIgnoreFileOfTheRepositoryHoldsBelow(t *testing.T) {
	t.Parallel()
	dir := tree(t, "k8s/a.yaml", "k8s/old/b.yaml", "k8s/test/c.yaml")
	must(t, os.WriteFile(filepath.Join(dir, IgnoreName), []byte("k8s/old\n"), 0o644))
	if d := cmp.Diff([]string{"a.yaml", "old/b.yaml", "test/c.yaml"}, readNames(t, filepath.Join(dir, "k8s"))); d != "" {
		t.Errorf("outside of a repository (-want +got):\n%s", d)
	}
	must(t, os.Mkdir(filepath.Join(dir, ".git"), 0o755))
	if d := cmp.Diff([]string{"a.yaml", "test/c.yaml"}, readNames(t, filepath.Join(dir, "k8s"))); d != "" {
		t.Errorf("in a repository (-want +got):\n%s", d)
	}
	// What is named itself is read, whatever the directories around it exclude.
	if d := cmp.Diff([]string{"b.yaml"}, readNames(t, filepath.Join(dir, "k8s/old"))); d != "" {
		t.Errorf("the directory itself (-want +got):\n%s", d)
	}
}

func TestAllIsExcluded(t *testing.T) {
	t.Parallel()
	dir := tree(t, "a.yaml")
	listing, err := Read(t.Context(), []string{dir}, Options{Exclude: []string{"*"}}, func(Input) { t.Error("read") })
	must(t, err)
	if len(listing.Errors) != 1 || !strings.HasSuffix(listing.Errors[0].Error(), "no .yaml, .yml or .json file that is not excluded") {
		t.Errorf("got %v", listing.Errors)
	}
}

// TestIgnoreAsGitDoes compares with git check-ignore, over trees and patterns of all sorts. Two asterisks beside other
// characters are left out: gitignore(5) calls them one, and git does not always take them so.
func TestIgnoreAsGitDoes(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	names := []string{"a", "b", "foo", "bar", "foo.yaml", "a b", "{x}", "#h", "!n", "a[1]"}
	var files []string
	for _, x := range append(names, "") {
		for _, y := range append(names[:4:4], "") {
			for _, z := range []string{"a.yaml", "foo.yaml", "b.json", "{x}.yaml"} {
				files = append(files, filepath.Join(x, y, z))
			}
		}
	}
	slices.Sort(files)
	files = slices.DeleteFunc(slices.Compact(files), func(f string) bool { return strings.HasPrefix(f, "foo.yaml/") || strings.Contains(f, "/foo.yaml/") })
	dir := tree(t, files...)
	run := func(stdin string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: nothing is ignored
			t.Fatalf("git %v: %v\n%s", args, err, errs.String())
		}
		return string(out)
	}
	run("", "init", "-q", ".")
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	pattern := func() string {
		var b strings.Builder
		b.WriteString(pick("", "", "", "!", "!", "#", `\!`, `\#`))
		b.WriteString(pick("", "", "", "/", "**/"))
		for i := range 1 + random.IntN(3) {
			if i > 0 {
				b.WriteString(pick("/", "/", "/**/"))
			}
			b.WriteString(pick("a", "b", "foo", "bar", "*", "f*", "*.yaml", "?", "[ab]", "[!a]", "[^a]", "**", "a b", "{x}", "a*b", "*.y*", `a\[1\]`, `\a`, "{a,b}", "foo.yaml", "#h", "!n"))
		}
		b.WriteString(pick("", "", "", "/", "/**", "/*", " ", `\ `))
		return b.String()
	}
	for trial := range 150 {
		var lines []string
		for range 1 + random.IntN(4) {
			lines = append(lines, pattern())
		}
		text := strings.Join(lines, "\n") + "\n"
		inner := pattern() + "\n"
		for _, name := range []string{IgnoreName, ".gitignore"} {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
			must(t, os.WriteFile(filepath.Join(dir, "foo", name), []byte(inner), 0o644))
		}
		ignored := strings.Split(run(strings.Join(files, "\x00"), "check-ignore", "--no-index", "--stdin", "-z"), "\x00")
		var want []string
		for _, f := range files {
			if !slices.Contains(ignored, f) {
				want = append(want, f)
			}
		}
		got := readNames(t, dir)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("trial %d: %s and in foo %q: files that are read (-git +prerig):\n%s", trial, fmt.Sprintf("%q", lines), inner, d)
		}
	}
}
