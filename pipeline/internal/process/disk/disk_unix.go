// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package disk

import "golang.org/x/sys/unix"

// readOnly is ST_RDONLY of Linux, and MNT_RDONLY of macOS.
const readOnly = 1

func spaceOf(dir string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return Space{}, err
	}
	block := uint64(s.Bsize)
	return Space{
		Available: s.Bavail * block, Capacity: s.Blocks * block, Inodes: s.Ffree, Counted: s.Files > 0,
		ReadOnly: s.Flags&readOnly != 0,
	}, nil
}
