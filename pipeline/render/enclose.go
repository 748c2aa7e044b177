// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import "golang.org/x/sys/unix"

// enclose takes the file system away from a renderer that is root, mostly in a user namespace of its own: what is left is
// /proc/self/fdinfo, a directory that holds nothing but the numbers of its own three open files, and in which nothing can
// be made. Where it is not permitted, the limits on files and the absence of code that opens any must do.
func enclose() {
	if unix.Getuid() != 0 {
		return
	}
	if err := unix.Chroot("/proc/self/fdinfo"); err == nil {
		_ = unix.Chdir("/")
	}
}
