// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import "golang.org/x/sys/unix"

func spaceOf(dir string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return Space{}, err
	}
	block := uint64(s.Bsize)
	return Space{
		Available: s.Bavail * block, Capacity: s.Blocks * block, Inodes: s.Ffree, Counted: s.Files > 0,
		ReadOnly: s.Flags&unix.ST_RDONLY != 0,
	}, nil
}
