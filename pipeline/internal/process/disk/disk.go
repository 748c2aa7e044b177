// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package disk reports how much space a directory has, and whether that suffices to continue.
package disk

import (
	"errors"
	"fmt"
)

// MinAvailable is how many bytes must be left: a stored event is smaller, and the files of a queue grow in steps below
// it.
const MinAvailable = 4 << 20

// Space is what the file system of a directory has room for.
type Space struct {
	// Available and Capacity are the bytes that this process can still write, and the total.
	Available, Capacity uint64
	// Inodes is how many files can still be made; Counted is false for file systems that do not count them.
	Inodes  uint64
	Counted bool
	// ReadOnly reports whether writing is impossible, as after the kernel has detected a broken disk.
	ReadOnly bool
}

// Of returns the space of a directory, which must exist. It only queries the system, and does not write.
func Of(dir string) (Space, error) {
	space, err := spaceOf(dir)
	if err != nil {
		return Space{}, fmt.Errorf("looking at the disk: %w", err)
	}
	return space, nil
}

// Problem returns why storing data is not possible, without the name of the directory, or nil if it is. It does not
// know quotas of a user.
func (s Space) Problem() error {
	switch {
	case s.ReadOnly:
		return errors.New("the disk of the state directory is read-only: nothing can be stored")
	case s.Available < MinAvailable:
		return fmt.Errorf("the disk of the state directory is full: %d bytes are left, and %d are needed", s.Available,
			MinAvailable)
	case s.Counted && s.Inodes == 0:
		return errors.New("the disk of the state directory has no inodes left: no file can be made")
	}
	return nil
}
