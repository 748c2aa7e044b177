// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"golang.org/x/sys/unix"

	"github.com/prerig/prerig/pipeline/render"
)

// isolateProcess permanently drops what a renderer does not need. It is called before any untrusted input is read.
// A layer that the system lacks is skipped and the others still hold; the result lists the active ones.
//
// The order matters: each layer forbids what the ones before it need.
func isolateProcess(wanted isolationLayers) render.Isolation {
	var have render.Isolation
	if wanted&layerRoot != 0 {
		have.Root = emptyRoot()
	}
	// Other processes of the same user must not inspect or trace this process; a failure cannot be reported to
	// anyone.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if wanted&layerLandlock != 0 {
		have.Landlock = restrictFiles(onAllThreads, -1)
	}
	if wanted&layerSeccomp != 0 {
		have.Seccomp = filterCalls(nil)
	}
	return have
}

// emptyRoot removes the file system from a renderer that is root, mostly in a user namespace of its own: all that
// remains is /proc/self/fdinfo, a directory that contains only the numbers of its own open files, and in which no
// file can be created.
func emptyRoot() bool {
	if unix.Getuid() != 0 || unix.Chroot("/proc/self/fdinfo") != nil {
		return false
	}
	return unix.Chdir("/") == nil
}
