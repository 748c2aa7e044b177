// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startsAProcess makes TestMain start a process, print its id and wait to be killed.
const startsAProcess = "PRERIG_CLUSTER_STARTS_A_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(startsAProcess) == "" {
		os.Exit(m.Run())
	}
	p, err := startProcess(os.TempDir(), "prerig-cluster-test", nil, "/bin/sleep", "600")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(p.command.Process.Pid)
	<-p.done
	os.Exit(1)
}

// TestNothingStaysBehind kills a process that has started another one.
func TestNothingStaysBehind(t *testing.T) {
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), startsAProcess+"=1", "TMPDIR="+t.TempDir())
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(child, 0); err != nil {
		t.Fatalf("the process that was started does not run: %v", err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	for deadline := time.Now().Add(time.Minute); ended(child) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d runs on after what started it was killed", child)
		}
	}
}

// ended returns an error when a process has ended, also when nobody has asked for its end yet.
func ended(pid int) error {
	if err := syscall.Kill(pid, 0); err != nil {
		return err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err
	}
	if after := string(stat[strings.LastIndex(string(stat), ")")+1:]); strings.HasPrefix(after, " Z") {
		return errors.New("it waits for its parent")
	}
	return nil
}

func TestKill(t *testing.T) {
	p, err := startProcess(t.TempDir(), "sleep", nil, "/bin/sh", "-c", "echo up; sleep 600 & wait")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.exitError(); err != nil {
		t.Fatal(err)
	}
	p.kill()
	if err := p.exitError(); err == nil {
		t.Error("it has not ended")
	}
}
