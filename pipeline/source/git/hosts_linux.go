// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hostsFile returns an in-memory file for the lines of known_hosts: if Prerig runs in a container, a directory for
// temporary files may be missing, and only the one for its state may be writable.
func hostsFile() (file *os.File, name string, err error) {
	fd, err := unix.MemfdCreate("known_hosts", unix.MFD_CLOEXEC)
	if err != nil {
		return temporaryHosts()
	}
	name = fmt.Sprintf("/proc/self/fd/%d", fd)
	return os.NewFile(uintptr(fd), name), name, nil
}
