// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hostsFile returns a file for the lines of known_hosts that is in memory only: where Prerig runs in a container, there may be
// no directory for temporary files, and none that can be written but the one for its state.
func hostsFile() (file *os.File, name string, err error) {
	fd, err := unix.MemfdCreate("known_hosts", unix.MFD_CLOEXEC)
	if err != nil {
		return temporaryHosts()
	}
	name = fmt.Sprintf("/proc/self/fd/%d", fd)
	return os.NewFile(uintptr(fd), name), name, nil
}
