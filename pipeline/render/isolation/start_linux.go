// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// refusesNamespaces reports whether a program may have failed to start because the system does not allow new
// namespaces, and whether that is permanent. Temporary causes are an exhausted limit and a program that is just
// being replaced.
func refusesNamespaces(err error) (refused, lasting bool) {
	lasting = errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL)
	return lasting || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EACCES), lasting
}

// Attributes has a program end with this process, in a process group of its own and perhaps in namespaces without a network.
func Attributes(namespaces bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if namespaces {
		attributes.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return attributes
}
