// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import "golang.org/x/sys/unix"

// enclose takes the file system away from a renderer that is root in a user namespace of its own: /proc/self/fdinfo of a
// process that ends is a directory in which nothing can be found or made. Where it is not permitted, the limits on files
// and the absence of code that opens any must do.
func enclose() {
	if unix.Getuid() != 0 {
		return
	}
	if err := unix.Chroot("/proc/self/fdinfo"); err == nil {
		_ = unix.Chdir("/")
	}
}
