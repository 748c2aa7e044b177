// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import "golang.org/x/sys/windows"

func spaceOf(dir string) (Space, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return Space{}, err
	}
	var s Space
	err = windows.GetDiskFreeSpaceEx(name, &s.Available, &s.Capacity, nil)
	return s, err
}
