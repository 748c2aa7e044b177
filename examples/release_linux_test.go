// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var releaseDir = flag.String("release", "", "the directory of a release, to walk through the quick start with")

// toDownload is what the quick start says of the commands that unpack a release.
const toDownload = "a release has to be downloaded"

// TestRelease walks through the quick start as somebody does who has nothing but the files of a release: no network, no Go, an empty home
// and directory. `make e2e-release` runs it.
func TestRelease(t *testing.T) {
	if *releaseDir == "" {
		t.Skip("-release names no release; make e2e-release does")
	}
	files, err := filepath.Abs(*releaseDir)
	if err != nil {
		t.Fatal(err)
	}
	version, platform := releaseVersion(t, files), runtime.GOOS+"_"+runtime.GOARCH
	for name, get := range map[string]string{
		// What the page says itself.
		"archive": "",
		"deb":     "dpkg-deb -x prerig_" + version + "_" + platform + ".deb .\nexport PATH=$PWD/usr/bin:$PATH\ncd usr/share/doc/prerig\n",
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			s := newStranger(t, files)
			s.run("sha256sum --quiet --check checksums.txt")
			walked := 0
			for _, b := range parseMarkdown(t, "../docs/quick-start.md") {
				switch {
				case b.notRun == toDownload && get != "":
					s.script.WriteString(get)
				case b.notRun == toDownload:
					s.script.WriteString(strings.NewReplacer("v0.2.0", version, "linux_amd64", platform).Replace(b.text))
				case b.in == inEmpty || !b.isShell(): // it builds
				default:
					walked += len(b.steps())
					for _, step := range b.steps() {
						s.step(step)
					}
				}
			}
			s.script.WriteString("prerig version >version\n")
			s.walk()
			if said := s.read("version"); !strings.HasPrefix(said, "prerig "+version+" (commit ") {
				t.Errorf("the program says %q", said)
			}
			if rendered := s.read("shop/shop/deployment-web.yaml"); !strings.Contains(rendered, "name: istio-proxy") {
				t.Errorf("what was committed has no sidecar:\n%s", rendered)
			}
			if walked < 8 {
				t.Errorf("only %d steps of the page were walked", walked)
			}
			t.Logf("%d steps, from the files to a rendered commit in %s", walked, time.Since(begin).Round(100*time.Millisecond))
		})
	}
}

func releaseVersion(t *testing.T, files string) string {
	t.Helper()
	statements, err := filepath.Glob(filepath.Join(files, "prerig_*.intoto.jsonl"))
	if err != nil || len(statements) != 1 {
		t.Fatalf("%s has %d statements of provenance, and a release has one: %v", files, len(statements), err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(statements[0]), "prerig_"), ".intoto.jsonl")
}

// stranger has a copy of a release in an otherwise empty directory, and the few programs that everybody has.
type stranger struct {
	t      *testing.T
	dir    string // where the release is
	env    []string
	script strings.Builder
	steps  []step
}

// theirPrograms are those that the quick start needs; Go is none of them.
var theirPrograms = []string{"sh", "git", "tar", "gzip", "cp", "mkdir", "sha256sum", "dpkg-deb", "rm"}

func newStranger(t *testing.T, files string) *stranger {
	t.Helper()
	root := t.TempDir()
	s := &stranger{t: t, dir: filepath.Join(root, "release")}
	bin, home := filepath.Join(root, "bin"), filepath.Join(root, "home")
	for _, dir := range []string{bin, home} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(s.dir, os.DirFS(files)); err != nil {
		t.Fatal(err)
	}
	for _, name := range theirPrograms {
		file, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("needs %s: %v", name, err)
		}
		if err := os.Symlink(file, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.env = []string{"PATH=" + bin, "HOME=" + home, "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=You", "GIT_AUTHOR_EMAIL=you@example.com",
		"GIT_COMMITTER_NAME=You", "GIT_COMMITTER_EMAIL=you@example.com"}
	return s
}

// step adds a step of a page to the script; what it prints goes to a file.
func (s *stranger) step(one step) {
	s.script.WriteString("{\n" + one.command + "\n} >" + s.output(len(s.steps)) + " 2>&1\n")
	s.steps = append(s.steps, one)
}

func (s *stranger) output(i int) string {
	return filepath.Join(filepath.Dir(s.dir), "step"+string(rune('a'+i)))
}

// walk runs the script, and compares what was printed with what the page shows.
func (s *stranger) walk() {
	s.t.Helper()
	s.run(s.script.String())
	for i, one := range s.steps {
		printed, err := os.ReadFile(s.output(i))
		if err != nil {
			s.t.Fatal(err)
		}
		if one.shown != nil && !matches(*one.shown, string(printed)) {
			s.t.Errorf("quick-start.md:%d: %s\nthe page shows something else (-page +printed):\n%s", one.line, one.command, cmp.Diff(*one.shown, string(printed)))
		}
	}
}

// run runs a script where there is no network, not even a loopback that is up.
func (s *stranger) run(script string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "sh", "-euc", script)
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		for i := range s.steps {
			printed, _ := os.ReadFile(s.output(i))
			out = append(out, printed...)
		}
		s.t.Fatalf("%v\n%s", err, out)
	}
}

// read reads a file of where the page ends.
func (s *stranger) read(name string) string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(s.dir), "*", name))
	if deeper, _ := filepath.Glob(filepath.Join(s.dir, "usr", "share", "doc", "*", name)); len(deeper) > 0 {
		found = deeper
	}
	if err != nil || len(found) != 1 {
		s.t.Fatalf("there are %d files %s: %v", len(found), name, err)
	}
	return string(read(s.t, found[0]))
}
