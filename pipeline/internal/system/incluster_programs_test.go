// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/prerig/prerig/internal/moduleroot"
	"github.com/prerig/prerig/internal/testprograms"
)

// upstreamPrograms builds other people's controllers, and returns the program and then what its definitions are in.
func upstreamPrograms(which string) ([]string, error) {
	root, err := moduleroot.Dir()
	if err != nil {
		return nil, err
	}
	dir, err := testprograms.Build(testprograms.ControlPlane)
	if err != nil {
		return nil, err
	}
	cache, err := clusterCache()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(dir, testprograms.ControlPlane.Name), which, "-upstream", filepath.Join(root, "fn", "internal", "upstream"), "-cache", cache)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("building for %s: %w\n%s", which, err, said.String())
	}
	return strings.Fields(string(out)), nil
}

// startProgram starts a program until the test ends, and returns its process. What it says is shown where the test fails.
func (c *inCluster) startProgram(name string, env []string, program string, args ...string) *os.Process {
	c.t.Helper()
	log, err := os.Create(filepath.Join(c.t.TempDir(), "log"))
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // the kernel ends the child with the thread that started it, so this one stays
		err := cmd.Start()
		if started <- err; err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && c.t.Failed() {
			c.t.Logf("%s said:\n%s", name, text[max(0, len(text)-8000):])
		}
	})
	return cmd.Process
}

// largest is how much memory a process has had at most, as the kernel says it.
func largest(p *os.Process) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid))
	if err != nil {
		return "an unknown size: it has ended"
	}
	for line := range strings.Lines(string(text)) {
		if size, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(size)
		}
	}
	return "unknown"
}
