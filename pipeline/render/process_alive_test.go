// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A renderer that waits may be ended by the system, for want of memory: no render is to be given to it.
func TestAnEndedRendererIsNotTaken(t *testing.T) {
	p, err := NewPool(Options{Command: []string{"/bin/sleep", "1000"}, Warm: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var waiting *rendererProcess
	select {
	case waiting = <-p.warm:
	case <-time.After(time.Minute):
		t.Fatal("no renderer was started")
	}
	if !waiting.isAlive() {
		t.Error("one that waits is taken for ended")
	}
	if err := unix.Kill(waiting.command.Process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); waiting.isAlive(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is taken for alive")
		}
	}
	p.warm <- waiting
	taken, err := p.takeWarmProcess()
	if err != nil {
		t.Fatal(err)
	}
	defer taken.killGroup()
	if taken == waiting || !taken.isAlive() {
		t.Error("the one that has ended was taken")
	}
}
