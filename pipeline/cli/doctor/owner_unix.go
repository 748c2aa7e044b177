// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package doctor

import (
	"io/fs"
	"os"
	"syscall"
)

// fileOwner returns the user whose a file is, and the one who asks.
func fileOwner(info fs.FileInfo) (whose uint32, me int) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, -1
	}
	return st.Uid, os.Geteuid()
}
