// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon"
)

// TestRemove takes the only pipeline away from a daemon, which asks whether that is meant, as an empty directory may be a
// mistake.
func TestRemove(t *testing.T) {
	_, pipelines := fleet(t, "web")
	state, err := os.MkdirTemp("", "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(state) })
	c := config.Default()
	c.Pipelines, c.State, c.Listen, c.Admin.Listen, c.Workers, c.Removals.Delay = pipelines, state, "127.0.0.1:0", "", 1, 0
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan bool, 1), make(chan error, 1)
	go func() {
		done <- daemon.Serve(ctx, &c, daemon.Options{Version: "test", Listening: func(_, _ string) { ready <- true }})
	}()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	case <-time.After(30 * time.Second):
		t.Fatal("the daemon did not start")
	}
	status := func(want string) {
		t.Helper()
		var out string
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			var code int
			if code, out, _ = prerig(t, "daemon", "status", "--state", state); code == 0 && strings.Contains(out, want) {
				return
			}
		}
		t.Fatalf("prerig daemon status lacks %q:\n%s", want, out)
	}
	status("team/web  Ready")
	if code, _, text := prerig(t, "daemon", "remove", "team/web", "--state", state); code != 2 || !strings.Contains(text, "not among the deleted pipelines") {
		t.Errorf("removing what is there: exit code %d, %s", code, text)
	}
	files, err := filepath.Glob(filepath.Join(pipelines, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
	}
	status("no pipeline is left at all")
	if code, _, text := prerig(t, "daemon", "remove", "--state", state); code != 2 || !strings.Contains(text, "set --all") {
		t.Errorf("no name: exit code %d, %s", code, text)
	}
	if code, _, text := prerig(t, "daemon", "remove", "team/web", "--orphan", "--state", state); code != 0 || !strings.Contains(text, "confirmed the removal of team/web") {
		t.Errorf("exit code %d, %s", code, text)
	}
	status("Removed team/web")
	// A removal is noted before the pipeline is forgotten, so that a kill between the two loses no note.
	out := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if _, out, _ = prerig(t, "daemon", "status", "--state", state); !strings.Contains(out, "DELETED") && !strings.Contains(out, "team/web  ") {
			return
		}
	}
	t.Errorf("a ghost:\n%s", out)
}
