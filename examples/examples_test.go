// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package examples runs every directory beside it against the real tools. A directory that holds .expected/config.yaml is
// an example; see config for what that file says. With -update the expected files are written anew.
package examples

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the expected files anew")

// config is .expected/config.yaml, with the field names of kpt's own tests where they mean the same.
type config struct {
	// Run is what to run in a copy of the directory: lines for the shell. README.md must show each of them.
	Run string `json:"run"`
	// Requires names what has to be on the machine besides Go, git and make: kpt, container.
	Requires []string `json:"requires,omitempty"`
	// ExitCode is the exit code.
	ExitCode int `json:"exitCode,omitempty"`
	// StdErr is a part of the standard error, StdErrRegEx a pattern that matches in it.
	StdErr      string `json:"stdErr,omitempty"`
	StdErrRegEx string `json:"stdErrRegEx,omitempty"`
	// NotIdempotent says that a second run in the same place may change files again.
	NotIdempotent bool `json:"notIdempotent,omitempty"`
}

// The expected files: standard output, and how the files change. One that is not there stands for nothing.
const (
	outputFile = "output.yaml"
	diffFile   = "diff.patch"
)

func TestExamples(t *testing.T) {
	found, err := filepath.Glob("*/.expected/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("there are no examples")
	}
	for _, path := range found {
		dir := filepath.Dir(filepath.Dir(path))
		t.Run(dir, func(t *testing.T) {
			var c config
			if err := yaml.UnmarshalStrict(read(t, path), &c); err != nil {
				t.Fatal(err)
			}
			c.check(t, dir)
			c.run(t, dir)
		})
	}
}

// TestEveryDirectoryIsAnExample keeps one from being forgotten.
func TestEveryDirectoryIsAnExample(t *testing.T) {
	dirs, err := filepath.Glob("*/")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || filepath.Base(dir) == "testdata" {
			continue
		}
		for _, file := range []string{"README.md", filepath.Join(".expected", "config.yaml")} {
			if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
				t.Errorf("%s has no %s", dir, file)
			}
		}
	}
}

// check compares the configuration with the README, which must show what is run.
func (c config) check(t *testing.T, dir string) {
	t.Helper()
	shown := commands(string(read(t, filepath.Join(dir, "README.md"))))
	for line := range strings.Lines(c.Run) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(shown, line) {
			t.Errorf("README.md does not show the command %q", line)
		}
	}
	for _, name := range c.Requires {
		if tools[name] == nil {
			t.Fatalf("nothing is known of %q, which the example requires", name)
		}
	}
}

// commands are the lines of the shell blocks of a README.
func commands(markdown string) []string {
	var out []string
	in := false
	for line := range strings.Lines(markdown) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			in = line == "```sh"
		case in:
			out = append(out, line)
		}
	}
	return out
}

// run runs an example in a copy of its directory, twice, and compares.
func (c config) run(t *testing.T, dir string) {
	t.Helper()
	env := environment(t, c.Requires)
	work := t.TempDir()
	copyTree(t, dir, work)
	git(t, work, "init", "-q", "-b", "main")
	git(t, work, "add", "-A")
	git(t, work, "commit", "-q", "-m", "before")

	stdout := c.shell(t, work, env)
	c.compare(t, dir, outputFile, stdout)
	changes := diff(t, work)
	c.compare(t, dir, diffFile, changes)
	if c.NotIdempotent || c.ExitCode != 0 {
		return
	}
	if again := c.shell(t, work, env); again != stdout && changes == "" {
		t.Errorf("the second run prints something else:\n%s", cmp.Diff(stdout, again))
	}
	if again := diff(t, work); again != changes {
		t.Errorf("the second run changes the files again:\n%s", cmp.Diff(changes, again))
	}
}

// shell runs the commands and checks the exit code and the standard error.
func (c config) shell(t *testing.T, dir string, env []string) string {
	t.Helper()
	cmd := exec.Command("sh", "-euc", c.Run)
	cmd.Dir, cmd.Env = dir, env
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != c.ExitCode {
		t.Fatalf("exit code %d (%v), want %d; standard error:\n%s", code, err, c.ExitCode, stderr.String())
	}
	if !strings.Contains(stderr.String(), c.StdErr) {
		t.Errorf("standard error is\n%s\nwhich does not hold %q", stderr.String(), c.StdErr)
	}
	if ok, err := regexp.MatchString(c.StdErrRegEx, stderr.String()); err != nil || !ok {
		t.Errorf("standard error is\n%s\nwhich does not match %q (%v)", stderr.String(), c.StdErrRegEx, err)
	}
	return stdout.String()
}

// compare compares what came out with an expected file, or writes that.
func (c config) compare(t *testing.T, dir, name, got string) {
	t.Helper()
	path := filepath.Join(dir, ".expected", name)
	if *update {
		os.Remove(path)
		if got != "" {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not as expected (-want +got):\n%s", path, diff)
	}
}

// copyTree copies an example without what is expected of it.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(to, ".expected")); err != nil {
		t.Fatal(err)
	}
}

// diff is how the files of a directory differ from what was committed.
func diff(t *testing.T, dir string) string {
	t.Helper()
	git(t, dir, "add", "-A")
	return git(t, dir, "diff", "--cached", "--no-color", "--no-ext-diff", "--no-renames", "HEAD")
}

// git runs git without the user's settings.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "core.abbrev=7", "-c", "core.autocrlf=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=Example", "GIT_AUTHOR_EMAIL=example@example.com",
		"GIT_COMMITTER_NAME=Example", "GIT_COMMITTER_EMAIL=example@example.com")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
