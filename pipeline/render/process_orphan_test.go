// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// startOnAndOn starts renderers from many goroutines at once until it is killed.
func startOnAndOn() {
	p, err := render.NewPool(render.Options{Command: []string{os.Args[0], "silent"}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	empty := tree.NewBuilder(tree.Limits{}).Build()
	for range 24 {
		go func() {
			for {
				_, _ = p.Render(ctx, tree.NewView(empty, tree.Limits{}), render.Request{Path: ".", Limits: render.DefaultLimits()})
			}
		}()
	}
	fmt.Println("starting")
	time.Sleep(time.Hour)
}

// starter runs startOnAndOn in a process, and gives the end of the pipe that is its standard output.
func starter(t *testing.T) (*exec.Cmd, *os.File) {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	command := exec.Command(os.Args[0], "start")
	command.Stdout, command.Stderr = in, os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	if err := out.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the process said %q: %v", line, err)
	}
	return command, out
}

// TestNothingOutlivesAKill kills a process while it starts renderers. What it has opened, here the pipe that it writes to,
// as its sockets and locks are, must be closed then: a child that waited for ever before its exec would keep the address
// and the lock of a daemon from the next one.
func TestNothingOutlivesAKill(t *testing.T) {
	for n := range 20 {
		command, out := starter(t)
		time.Sleep(rand.N(40 * time.Millisecond))
		if err := command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = command.Wait()
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Fatalf("after %d kills, something that the process had started has kept what it had open: %v", n+1, err)
		}
	}
}

// TestOneIsStartedAtATime looks for the state in which a kill leaves children behind, which few kills hit: two of them
// that have not come to their exec.
func TestOneIsStartedAtATime(t *testing.T) {
	command, _ := starter(t)
	seen := 0
	// How many looks fit into a second depends on the machine; their number does not.
	for looks, end := 0, time.Now().Add(2*time.Minute); (looks < 100 || seen == 0) && time.Now().Before(end) && !t.Failed(); looks++ {
		early, late := childrenOf(t, command.Process.Pid)
		seen += late
		// The first is looked at again: that it was there when the last one was seen is what counts.
		if len(early) > 1 && beforeExec(early[0]) {
			t.Errorf("%d children were there at once before their exec", len(early))
		}
	}
	if seen == 0 {
		t.Error("no renderer was seen")
	}
}

// childrenOf returns the directories of a process's children that have not come to their exec, and counts the others.
func childrenOf(t *testing.T, parent int) (early []string, late int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats {
		text, err := os.ReadFile(name)
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); err != nil || len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if beforeExec(filepath.Dir(name)) {
			early = append(early, filepath.Dir(name))
		} else {
			late++
		}
	}
	return early, late
}

// beforeExec reports whether a process has the arguments of startOnAndOn still.
func beforeExec(process string) bool {
	arguments, err := os.ReadFile(filepath.Join(process, "cmdline"))
	return err == nil && strings.HasSuffix(string(arguments), "\x00start\x00")
}
