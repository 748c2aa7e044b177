// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Enclose lets the tests' stand-in renderer enclose itself as the real one does, with all layers or with one of them.
func Enclose(layer string) Isolation {
	switch layer {
	case "none":
		return isolateProcess(0)
	case "root":
		return isolateProcess(layerRoot)
	case "seccomp":
		return isolateProcess(layerSeccomp)
	case "landlock":
		// A test binary may be made with C, where a call cannot be made on all threads: this one alone is enclosed, and what is
		// tried must be tried on it.
		runtime.LockOSThread()
		return Isolation{Landlock: restrictFiles(func(trap, a1, a2, a3 uintptr) (uintptr, uintptr, syscall.Errno) {
			return unix.Syscall(trap, a1, a2, a3)
		})}
	}
	return isolateProcess(allLayers)
}

// Waiting are the processes that wait to be used again.
func (p *Pool) Waiting() (pids []int) {
	p.sessions.mu.Lock()
	defer p.sessions.mu.Unlock()
	for _, one := range p.sessions.idle {
		pids = append(pids, one.worker.command.Process.Pid)
	}
	return pids
}

// LetAsk bounds the questions of a render, in bytes.
func (p *Pool) LetAsk(bytes int) { p.asking = bytes }

// LetWait has processes wait for as long as a test needs, however slow the machine is and however much the race detector takes.
func (p *Pool) LetWait() {
	p.sessions.patience, p.sessions.room, p.sessions.stepBack = time.Hour, 1<<40, time.Hour
}
