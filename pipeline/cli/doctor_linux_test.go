// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/internal/testprograms"
	"github.com/prerig/prerig/pipeline/cli/doctor"
)

// TestDoctorAsAnotherUser runs the doctor as somebody who may not look into what the daemon's user has. While a daemon answers, nothing of
// that is an error; without one it may be the daemon's own user, who could not work so.
func TestDoctorAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	daemonProject(t)
	must(t, os.Mkdir("state", 0o700))
	program := filepath.Join(t.TempDir(), "prerig")
	renderer, err := testprograms.RendererPath()
	must(t, err)
	for from, to := range map[string]string{os.Args[0]: program, renderer: filepath.Join(filepath.Dir(program), testprograms.PrerigRender.Name)} {
		text, err := os.ReadFile(from)
		must(t, err)
		must(t, os.WriteFile(to, text, 0o755))
	}
	here, err := os.Getwd()
	must(t, err)
	must(t, os.Chmod(filepath.Dir(here), 0o755)) // the directories of tests are only their user's
	asNobody := func() ([]doctor.Finding, int) {
		cmd := exec.CommandContext(t.Context(), program, "doctor", "--config", "prerig.yaml", "-o", "json")
		cmd.Env = append(os.Environ(), commandVariable+"=1", "HOME=/nonexistent")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		var found []doctor.Finding
		if err := json.Unmarshal(out, &found); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return found, cmd.ProcessState.ExitCode()
	}
	has := func(found []doctor.Finding, severity result.Severity, area doctor.Area, text string) bool {
		return slices.ContainsFunc(found, func(f doctor.Finding) bool {
			return f.Severity == severity && f.Area == area && strings.Contains(f.Message, text)
		})
	}
	found, code := asNobody()
	if code != 1 || !has(found, result.Error, doctor.State, "permission denied") {
		t.Errorf("without a daemon the exit code is %d:\n%s", code, strings.Join(wrong(found), "\n"))
	}

	address, _, _ := strings.Cut(readFile(t, "prerig.yaml")[strings.Index(readFile(t, "prerig.yaml"), "listen: ")+len("listen: "):], "\n")
	listener, err := net.Listen("tcp", address)
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/healthz" {
				w.WriteHeader(http.StatusNotFound)
			}
		}))
	}()
	found, code = asNobody()
	if code != 0 || !has(found, result.Warning, doctor.State, "belongs to the user root, while this is ") || has(found, result.Error, doctor.Addresses, "") {
		t.Errorf("while a daemon answers the exit code is %d:\n%s", code, strings.Join(wrong(found), "\n"))
	}
	if !has(found, result.Warning, doctor.Webhooks, "permission denied") {
		t.Errorf("the secret that only the daemon's user can read is not told of:\n%s", strings.Join(wrong(found), "\n"))
	}
}
