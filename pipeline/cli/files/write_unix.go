// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner sets the owner of f to that of the file that it replaces, if permitted.
func keepOwner(f *os.File, was fs.FileInfo) {
	st, ok := was.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) == os.Geteuid() && int(st.Gid) == os.Getegid() {
		return
	}
	_ = f.Chown(int(st.Uid), int(st.Gid)) // another user's file becomes ours when we may not change its owner
}

// linkCount returns the number of names of a file: more than one if it has hard links.
func linkCount(info fs.FileInfo) int {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return int(st.Nlink)
}

// isOurs reports whether a file belongs to the user whose process this is.
func isOurs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// isGone reports whether certainly no process has the number.
func isGone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// syncDirectory flushes a directory, on file systems that can.
func syncDirectory(in place, dir string) error {
	d, err := in.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
