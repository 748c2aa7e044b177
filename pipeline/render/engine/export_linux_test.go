// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/prerig/prerig/pipeline/render"
)

// Enclose lets the tests' stand-in renderer enclose itself as the real one does, with all layers or with one of them.
func Enclose(layer string) render.Isolation {
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
		return render.Isolation{Landlock: restrictFiles(func(trap, a1, a2, a3 uintptr) (uintptr, uintptr, syscall.Errno) {
			return unix.Syscall(trap, a1, a2, a3)
		}, -1)}
	}
	return isolateProcess(allLayers)
}
