// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// networkCall is a line of strace about a call for the network.
var networkCall = regexp.MustCompile(`(?m)^\d+ +(socket|connect|sendto|sendmsg|bind|listen|accept4?)\(`)

// TestRenderingAChartAsksNoNetwork looks at the renderer's system calls, which a filter would refuse.
func TestRenderingAChartAsksNoNetwork(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed")
	}
	dir, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	if err := testbed.Write(dir, example(t, "helm")); err != nil {
		t.Fatal(err)
	}
	trace := []string{"strace", "-f", "-qq", "-e", "signal=none", "-e", "trace=%network,execve", "-o", calls}
	out, errs, err := shell(t, dir, nil, append(trace, prerig, "render", "--source", ".", "shop")...)
	if err != nil && strings.Contains(errs, "PTRACE") {
		t.Skip("processes may not be looked at here")
	}
	if err != nil || !strings.Contains(out, "name: istio-proxy\n") {
		t.Fatalf("%v: %s\n%s", err, errs, out)
	}
	text, err := os.ReadFile(calls)
	if err != nil || !strings.Contains(string(text), `prerig-render"`) {
		t.Fatalf("%v: strace has not seen the renderer:\n%s", err, text)
	}
	if found := networkCall.FindString(string(text)); found != "" {
		t.Errorf("the network is asked for:\n%s", text)
	}
}
