// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
)

// Isolation says what keeps a renderer from the machine that it runs on. Each part holds without the others, and none
// needs a privilege; which of them there are is for the kernel to say, and for who runs it.
type Isolation struct {
	// Namespaces: user, network, IPC and host name are its own; there is no network to reach.
	Namespaces bool `json:"namespaces"`
	// Root: its root directory is empty, and nothing can be made in it.
	Root bool `json:"root"`
	// Landlock is the version of Landlock's interface by which no file can be opened or made, 0 for none. From version 4 on
	// TCP is closed too, which is not all of a network, and from 6 on abstract sockets and signals to others.
	Landlock int `json:"landlock"`
	// Seccomp: the kernel takes a few system calls only. None opens a file or socket, starts a program, or looks at another
	// process.
	Seccomp bool `json:"seccomp"`
}

// Network reports whether the kernel keeps a renderer off the network.
func (i Isolation) Network() bool { return i.Namespaces || i.Seccomp }

// Files reports whether the kernel keeps a renderer from files.
func (i Isolation) Files() bool { return i.Root || i.Seccomp || i.Landlock > 0 }

// Problem says what a renderer is not kept from, and what to do; it is empty where it is kept from the network and from files.
func (i Isolation) Problem() string {
	if i.Network() && i.Files() {
		return ""
	}
	return "this kernel cannot isolate renderers from the network or from files; nothing in them dials or opens files, but allow " +
		"user namespaces or seccomp to be sure"
}

// Layers returns each part by its name, with whether it is there.
func (i Isolation) Layers() map[string]bool {
	return map[string]bool{"namespaces": i.Namespaces, "root": i.Root, "landlock": i.Landlock > 0, "seccomp": i.Seccomp}
}

// String lists what is there.
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
