// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRendererBesideTheProgram finds the renderer that was built with the program, and refuses others: they might render something else.
func TestRendererBesideTheProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, beside := filepath.Join(dir, "prerig"), filepath.Join(dir, Program)
	for _, built := range []string{"", "sha256:00"} {
		_, err := findRenderer(self, built)
		if !errors.Is(err, ErrNoRenderer) || !strings.Contains(err.Error(), Program+" is missing") || !strings.Contains(err.Error(), beside) {
			t.Errorf("without a renderer: got %v", err)
		}
	}
	if err := os.WriteFile(beside, []byte("one build"), 0o755); err != nil {
		t.Fatal(err)
	}
	id, err := identifyRendererBinary(beside)
	if err != nil {
		t.Fatal(err)
	}
	for _, built := range []string{"", id} {
		if got, err := findRenderer(self, built); err != nil || got != beside {
			t.Errorf("with its renderer beside it: got %s and %v", got, err)
		}
	}
	if err := os.WriteFile(beside, []byte("another build"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := findRenderer(self, id); !errors.Is(err, ErrNoRenderer) || !strings.Contains(err.Error(), beside+" is of another build") {
		t.Errorf("with a renderer of another build: got %v", err)
	}
}

// TestRendererBesideALink finds the renderer beside the program that a link leads to.
func TestRendererBesideALink(t *testing.T) {
	t.Parallel()
	dir, bin := t.TempDir(), t.TempDir()
	beside, link := filepath.Join(dir, Program), filepath.Join(bin, "prerig")
	for _, name := range []string{filepath.Join(dir, "prerig"), beside} {
		if err := os.WriteFile(name, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "prerig"), link); err != nil {
		t.Fatal(err)
	}
	want, err := filepath.EvalSymlinks(beside)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := findRenderer(link, ""); err != nil || got != want {
		t.Errorf("got %s and %v, want %s", got, err, want)
	}
}

// TestIdentityOnEverySystem reads the build ID as go tool buildid does, which the linker of a release gets it from.
func TestIdentityOnEverySystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"linux/arm64", "darwin/arm64", "windows/amd64"} {
		file := filepath.Join(dir, strings.ReplaceAll(system, "/", "-"))
		goos, goarch, _ := strings.Cut(system, "/")
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, filepath.Join(dir, "main.go"))
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", system, err, out)
		}
		want, err := exec.Command("go", "tool", "buildid", file).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := identifyRendererBinary(file); err != nil || got != "go:"+strings.TrimSpace(string(want)) {
			t.Errorf("%s: got %s and %v, want go:%s", system, got, err, want)
		}
	}
}
