// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import "golang.org/x/sys/unix"

// maxMemory is how many bytes the program may have. It needs 150 MB, and twenty times the largest object that an API server takes.
const maxMemory = 768 << 20

// limitProcess sets what the program may use. It writes no file.
func limitProcess(pid int) error {
	for _, one := range []struct {
		what  int
		value uint64
	}{{unix.RLIMIT_DATA, maxMemory}, {unix.RLIMIT_FSIZE, 0}, {unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NOFILE, 64}} {
		if err := unix.Prlimit(pid, one.what, &unix.Rlimit{Cur: one.value, Max: one.value}, nil); err != nil {
			return err
		}
	}
	return nil
}
