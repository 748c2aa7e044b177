// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package files

import (
	"os"
	"syscall"
)

// openFile opens a file to read it. What has become a named pipe since it was looked at does not make it wait.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
