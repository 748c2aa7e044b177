// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	// shellBlock is a block of commands, with the block of its output where one follows at once.
	shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:\n```text\n(.*?)```)?")
	// continued is the end of a line that goes on.
	continued = regexp.MustCompile(`\\\n\s*`)
)

// TestReadme runs every prerig command of the README, in a directory that has the files it names. What stands before it in a
// pipe is replaced by a file with such output, and what stands behind it is left out: that is other people's software.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	must(t, err)
	blocks := shellBlock.FindAllStringSubmatch(string(readme), -1)
	if len(blocks) < 5 {
		t.Fatalf("found only %d blocks of commands", len(blocks))
	}
	fixture, err := filepath.Abs("testdata/readme")
	must(t, err)
	ran := 0
	for _, block := range blocks {
		commands := continued.ReplaceAllString(block[1], " ")
		for line := range strings.Lines(commands) {
			if args, stdin, found := readmeCommand(t, line, fixture); found {
				ran++
				t.Run(strings.TrimSpace(line), func(t *testing.T) { runReadme(t, fixture, args, stdin, block[2]) })
			}
		}
	}
	if ran < 8 {
		t.Errorf("found only %d prerig commands", ran)
	}
}

// readmeCommand returns the arguments of the prerig command in a line, and its standard input.
func readmeCommand(t *testing.T, line, fixture string) (args []string, stdin string, found bool) {
	t.Helper()
	line, _, _ = strings.Cut(line, " #")
	parts := strings.Split(line, "|")
	for i, part := range parts {
		words := strings.Fields(part)
		if len(words) == 0 || words[0] != "prerig" {
			continue
		}
		if i > 0 {
			source, ok := map[string]string{"kubectl": "cluster.yaml", "helm": "cluster.yaml", "kustomize": "deployment.yaml"}[strings.Fields(parts[0])[0]]
			if !ok {
				t.Fatalf("no output of the command %q is prepared", strings.TrimSpace(parts[0]))
			}
			stdin = readFile(t, filepath.Join(fixture, source))
		}
		return words[1:], stdin, true
	}
	return nil, "", false
}

func runReadme(t *testing.T, fixture string, args []string, stdin, want string) {
	work := t.TempDir()
	for name, text := range tree(t, fixture) {
		path := filepath.Join(work, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	t.Chdir(work)
	code, stdout, stderr := command(t, stdin, args...)
	expected := ExitOK
	for _, a := range args {
		if a == "--check" { // the files of the fixture are not injected
			expected = ExitFindings
		}
	}
	if code != expected {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	if want != "" {
		if d := cmp.Diff(want, stdout); d != "" {
			t.Errorf("the README shows another output (-README +real):\n%s", d)
		}
	}
}
