// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
)

// Isolation lists the layers that isolate a renderer from its machine. Each layer holds without the others, and
// none needs a privilege; which layers are active depends on the kernel and on how the program is run.
type Isolation struct {
	// Namespaces reports whether the renderer has its own user, network, IPC and host name namespaces; it can reach
	// no network.
	Namespaces bool `json:"namespaces"`
	// Root reports whether its root directory is empty, and no file can be created in it.
	Root bool `json:"root"`
	// Landlock is the version of Landlock's interface by which no file can be opened or made, 0 for none. From version 4 on
	// TCP is closed too, which is not all of a network, and from 6 on abstract sockets and signals to others.
	Landlock int `json:"landlock"`
	// Seccomp reports whether the kernel accepts only a few system calls. None opens a file or socket, starts a
	// program, or inspects another process.
	Seccomp bool `json:"seccomp"`
}

// Network reports whether the kernel keeps a renderer off the network.
func (i Isolation) Network() bool { return i.Namespaces || i.Seccomp }

// Files reports whether the kernel keeps a renderer from files.
func (i Isolation) Files() bool { return i.Root || i.Seccomp || i.Landlock > 0 }

// Problem describes what a renderer is not isolated from, and how to fix it; it is empty if the renderer is
// isolated from the network and from files.
func (i Isolation) Problem() string {
	if i.Network() && i.Files() {
		return ""
	}
	return "this kernel cannot isolate renderers from the network or from files; nothing in them dials or opens files, but allow " +
		"user namespaces or seccomp to be sure"
}

// Layers maps the name of each layer to whether it is active.
func (i Isolation) Layers() map[string]bool {
	return map[string]bool{"namespaces": i.Namespaces, "root": i.Root, "landlock": i.Landlock > 0, "seccomp": i.Seccomp}
}

// String lists the active layers.
func (i Isolation) String() string {
	var have []string
	if i.Namespaces {
		have = append(have, "namespaces")
	}
	if i.Root {
		have = append(have, "empty root")
	}
	if i.Landlock > 0 {
		have = append(have, fmt.Sprintf("Landlock %d", i.Landlock))
	}
	if i.Seccomp {
		have = append(have, "seccomp")
	}
	if len(have) == 0 {
		return "none"
	}
	return strings.Join(have, ", ")
}
