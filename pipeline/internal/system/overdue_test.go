// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/server"
)

// stuckFile makes a file that whoever reads it hangs at, as on a file system whose server is gone. It returns what puts a usual
// file in its place and lets go of all who hang.
func (f *fixture) stuckFile(path string) (release func(text string)) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		f.t.Fatal(err)
	}
	moved := filepath.Join(f.t.TempDir(), "fifo")
	letGo := func() {
		if w, err := os.OpenFile(moved, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			w.Close()
		}
	}
	release = func(text string) {
		if err := os.Rename(path, moved); err != nil {
			f.t.Fatal(err)
		}
		f.write(path, text)
		letGo()
	}
	f.t.Cleanup(func() {
		_ = os.Rename(path, moved)
		letGo()
	})
	return release
}

// failsWith waits until a pipeline fails with a text.
func (f *fixture) failsWith(name, text string) {
	f.t.Helper()
	f.eventually("waiting for "+name+" to fail with "+text, func() string {
		for _, p := range f.pipelines("team/" + name) {
			if p.State == server.StateFailing && strings.Contains(p.Message, text) {
				return ""
			}
		}
		return f.describe()
	})
}

// TestFinding3FileSystemThatHangs has secrets on a file system that hangs, one that is needed to publish and one that is needed to
// read a source: their pipelines fail and say so, the other one of the branch goes on, one that hangs can be removed, and the other
// goes on when the file system answers again.
func TestFinding3FileSystemThatHangs(t *testing.T) {
	f := prepare(t, nil)
	f.repository.Commit("first", map[string]string{
		"apps/web/web.yaml": deployment("web", "web:1"), "apps/signed/web.yaml": deployment("signed", "web:1"), "apps/read/web.yaml": deployment("read", "web:1"),
	})
	f.c.Removals.Delay = 300 * time.Millisecond
	pipeline := func(name, old, changed string) {
		f.write(filepath.Join(f.c.Pipelines, name+".yaml"), strings.Replace(pipelineYAML(name, f.repository.URL), old, changed, 1))
	}
	pipeline("web", "", "")
	pipeline("signed", "branch: rendered", "branch: rendered, signing: {secretRef: {name: signing}}")
	pipeline("read", "ref: {branch: main}", "ref: {branch: main}, secretRef: {name: reading}")
	f.stuckFile(filepath.Join(f.c.Secrets, "team/signing/git.asc"))
	answerAgain := f.stuckFile(filepath.Join(f.c.Secrets, "team/reading/password"))
	f.write(filepath.Join(f.c.Secrets, "team/reading/username"), "me")
	f.write(filepath.Join(f.c.Secrets, "team/reading/.hosts"), strings.Replace(f.git.URL, "https://", "http://", 1))
	f.startWith(daemon.Options{Watchdog: &watchdog.Watchdog{Longest: 8 * time.Second, Grace: 200 * time.Millisecond}})
	f.shows("web/shop/deployment-web.yaml", "image: web:1")
	f.failsWith("signed", "it hangs and was left behind")
	f.failsWith("read", "it hangs and was left behind")
	f.push(f.repository.Commit("second", map[string]string{"apps/web/web.yaml": deployment("web", "web:2")}))
	f.shows("web/shop/deployment-web.yaml", "image: web:2")
	for _, step := range []string{watchdog.StepPublish, watchdog.StepFetch} {
		if series := fmt.Sprintf("prerig_overdue_steps{step=%q}", step); f.metrics()[series] < 1 {
			t.Errorf("%s is %v", series, f.metrics()[series])
		}
	}
	if err := os.Remove(filepath.Join(f.c.Pipelines, "signed.yaml")); err != nil {
		t.Fatal(err)
	}
	f.removed("signed")
	answerAgain("secret\n")
	f.becomes("team/read", server.StateReady)
	f.eventually("waiting for what hung", func() string {
		if hanging := f.metrics()[fmt.Sprintf("prerig_overdue_steps{step=%q}", watchdog.StepFetch)]; hanging != 0 {
			return fmt.Sprint(hanging, " still hang")
		}
		return ""
	})
}
