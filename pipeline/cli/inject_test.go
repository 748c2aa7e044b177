// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// arrange makes a directory with the shared files, goes there, and gives the text of the workload.
func arrange(t *testing.T) string {
	t.Helper()
	shared := tree(t, "testdata/shared")
	dir := t.TempDir()
	for name, text := range shared {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	t.Chdir(dir)
	return shared["web.yaml"]
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

// ok runs a command line that must work.
func ok(t *testing.T, stdin string, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := command(t, stdin, args...)
	if code != ExitOK {
		t.Fatalf("%v: exit code %d\n%s", args, code, stderr)
	}
	return stdout, stderr
}

func TestInjectTwiceChangesNothing(t *testing.T) {
	arrange(t)
	once, _ := ok(t, "", "inject", "-p", "tiny.yaml", "web.yaml")
	must(t, os.WriteFile("web.yaml", []byte(once), 0o644))
	twice, _ := ok(t, "", "inject", "-p", "tiny.yaml", "web.yaml")
	if once != twice {
		t.Errorf("the second run changed something:\n%s\n---\n%s", once, twice)
	}
	if code, _, stderr := command(t, "", "inject", "-p", "tiny.yaml", "--check", "web.yaml"); code != ExitOK {
		t.Errorf("--check of what inject wrote: exit code %d\n%s", code, stderr)
	}
}

func TestRemoveGivesTheOriginalBack(t *testing.T) {
	original := arrange(t)
	ok(t, "", "inject", "-p", "tiny.yaml", "-i", "web.yaml")
	if !strings.Contains(readFile(t, "web.yaml"), "istio-proxy") {
		t.Fatal("nothing was injected")
	}
	ok(t, "", "inject", "-p", "tiny.yaml", "-i", "--remove", "web.yaml")
	if got := readFile(t, "web.yaml"); got != original {
		t.Errorf("got\n%s\nwant\n%s", got, original)
	}
}

func TestInPlaceKeepsLineEnds(t *testing.T) {
	original := arrange(t)
	must(t, os.WriteFile("web.yaml", []byte(strings.ReplaceAll(original, "\n", "\r\n")), 0o644))
	ok(t, "", "inject", "-p", "tiny.yaml", "-i", "web.yaml")
	got := readFile(t, "web.yaml")
	if !strings.Contains(got, "istio-proxy") {
		t.Fatal("nothing was injected")
	}
	if n, crlf := strings.Count(got, "\n"), strings.Count(got, "\r\n"); n != crlf {
		t.Errorf("%d of %d lines end with CRLF:\n%q", crlf, n, got)
	}
}

func TestInPlaceReadOnly(t *testing.T) {
	original := arrange(t)
	must(t, os.WriteFile("other.yaml", []byte(original), 0o644))
	must(t, os.Chmod("web.yaml", 0o444))
	code, _, stderr := command(t, "", "inject", "-p", "tiny.yaml", "-i", "other.yaml", "web.yaml")
	if code != ExitError || !strings.Contains(stderr, "web.yaml in place: the file is read-only (mode 0444)") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if readFile(t, "other.yaml") != original {
		t.Error("the other file was written")
	}
	// A read-only file that does not change is no error.
	must(t, os.WriteFile("config.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"), 0o444))
	ok(t, "", "inject", "-p", "tiny.yaml", "-i", "other.yaml", "config.yaml")
}

func TestInPlaceKeepsLinks(t *testing.T) {
	arrange(t)
	must(t, os.Symlink("web.yaml", "link.yaml"))
	ok(t, "", "inject", "-p", "tiny.yaml", "-i", "link.yaml")
	if dest, err := os.Readlink("link.yaml"); err != nil || dest != "web.yaml" {
		t.Errorf("the link is gone: %v", err)
	}
	if !strings.Contains(readFile(t, "web.yaml"), "istio-proxy") {
		t.Error("the file behind the link was not written")
	}
}

func TestNoInputAtATerminal(t *testing.T) {
	arrange(t)
	for _, args := range [][]string{{"inject"}, {"import"}} {
		var out, errs bytes.Buffer
		code := Main(t.Context(), args, Streams{In: strings.NewReader(""), Out: &out, Err: &errs, InTerminal: true}, "")
		if code != ExitError || !strings.Contains(errs.String(), "no input") {
			t.Errorf("%v: exit code %d\n%s", args, code, errs.String())
		}
	}
}

func TestInterrupted(t *testing.T) {
	original := arrange(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	code := Main(ctx, []string{"inject", "-p", "tiny.yaml", "-i", "web.yaml"}, Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, "")
	if code != ExitError || !strings.Contains(errs.String(), "interrupted; nothing was written") {
		t.Errorf("exit code %d\n%s", code, errs.String())
	}
	if readFile(t, "web.yaml") != original {
		t.Error("the file was written")
	}
}

func TestVersion(t *testing.T) {
	stdout, _ := ok(t, "", "--version")
	if !strings.HasPrefix(stdout, "prerig v0.0.0-test (") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("got %q", stdout)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if stdout, _ := ok(t, "", "completion", shell); !strings.Contains(stdout, "prerig") {
			t.Errorf("%s: %q", shell, stdout)
		}
	}
	if stdout, _ := ok(t, "", "__complete", "inject", "--color", ""); !strings.HasPrefix(stdout, "auto\nalways\nnever\n") {
		t.Errorf("--color completes to %q", stdout)
	}
}

// TestBinary runs the command as people do.
func TestBinary(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "prerig")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=v1.2.3", "-o", binary, "../cmd/prerig")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	original := arrange(t)
	runBinary := func(stdin string, args ...string) (code int, stdout, stderr string) {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		var out, errs bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
		_ = cmd.Run() // the exit code says it
		return cmd.ProcessState.ExitCode(), out.String(), errs.String()
	}
	if code, stdout, _ := runBinary("", "--version"); code != ExitOK || !strings.HasPrefix(stdout, "prerig v1.2.3 (") {
		t.Errorf("--version: %d %q", code, stdout)
	}
	code, stdout, stderr := runBinary(original, "inject", "-p", "tiny.yaml")
	if code != ExitOK || !strings.Contains(stdout, "name: istio-proxy") || strings.Contains(stdout, "info:") {
		t.Errorf("inject: %d\n%s\n%s", code, stdout, stderr)
	}
	if strings.Contains(stdout, "\x1b") || strings.Contains(stderr, "\x1b") {
		t.Error("colours in a pipe")
	}
	if code, _, _ := runBinary("", "inject", "-p", "tiny.yaml", "--check", "web.yaml"); code != ExitFindings {
		t.Errorf("inject --check: exit code %d", code)
	}
	if code, _, _ := runBinary("", "inject", "nowhere.yaml"); code != ExitError {
		t.Errorf("inject nowhere.yaml: exit code %d", code)
	}
	if code, _, stderr := runBinary("", "inject", "-p", "tiny.yaml", "-i", "web.yaml"); code != ExitOK {
		t.Errorf("inject -i: %d\n%s", code, stderr)
	}
	if readFile(t, "web.yaml") != stdout {
		t.Error("in place and to standard output give different bytes")
	}
}
