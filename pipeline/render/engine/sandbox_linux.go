// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"golang.org/x/sys/unix"

	"github.com/prerig/prerig/pipeline/render"
)

// isolateProcess takes from this process what a renderer has no use for, for good. It is called before anything that is not
// trusted is read. A layer that the system does not have is left out and the others hold; which there are is the answer.
//
// The order matters: each layer forbids what the ones before it need.
func isolateProcess(wanted isolationLayers) render.Isolation {
	var have render.Isolation
	if wanted&layerRoot != 0 {
		have.Root = emptyRoot()
	}
	// Others of the same user may not look into this process, nor it be traced; there is nothing to be told of a failure.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if wanted&layerLandlock != 0 {
		have.Landlock = restrictFiles(onAllThreads)
	}
	if wanted&layerSeccomp != 0 {
		have.Seccomp = filterCalls()
	}
	return have
}

// emptyRoot takes the file system away from a renderer that is root, mostly in a user namespace of its own: what is left
// is /proc/self/fdinfo, a directory that holds nothing but the numbers of its own open files, and in which nothing can be
// made.
func emptyRoot() bool {
	if unix.Getuid() != 0 || unix.Chroot("/proc/self/fdinfo") != nil {
		return false
	}
	return unix.Chdir("/") == nil
}
