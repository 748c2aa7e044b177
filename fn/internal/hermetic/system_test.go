// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package hermetic

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// call is the beginning of a line of strace's: a process, a system call and its arguments.
var call = regexp.MustCompile(`^\d+ +(\w+)\((.*)`)

// quoted is a path among the arguments.
var quoted = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)

// TestSystemCalls watches what the binary asks the kernel for. It opens no socket, starts no program, and names no path
// that it does not name when it only prints its version: those are the runtime's, before anything of ours runs.
func TestSystemCalls(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		if inCI {
			t.Fatal("strace is missing")
		}
		t.Skip("strace is not installed")
	}
	prerig := built(t)
	trace := func(t *testing.T, input []byte, args ...string) map[string]bool {
		log := filepath.Join(t.TempDir(), "log")
		got := run(t, input, surroundings{}, append([]string{
			strace, "-f", "-qq", "-s", "4096", "--seccomp-bpf", "-e", "signal=none", "-e", "trace=%network,%file", "-o", log, prerig,
		}, args...)...)
		seen := calls(t, log)
		if !seen["execve "+prerig] {
			t.Fatalf("strace saw no start of the binary; it says %s and logs %q", got.stderr, read(t, log))
		}
		return seen
	}
	startUp := trace(t, nil, "--version")
	for name, input := range inputs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for c := range trace(t, input) {
				if !startUp[c] {
					t.Errorf("calls %s", c)
				}
			}
		})
	}
}

// calls reads strace's log: the names of all calls, with the paths in their arguments.
func calls(t *testing.T, log string) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		m := call.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		c := m[1] + " "
		if path := quoted.FindStringSubmatch(m[2]); path != nil {
			c += path[1]
		}
		seen[c] = true
	}
	return seen
}
