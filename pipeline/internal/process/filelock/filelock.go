// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package filelock locks files among processes.
package filelock

import "os"

// Try tries to acquire the exclusive lock of an open file, and reports whether it succeeded; false means that it is
// held elsewhere. The lock ends when the file is closed, including by the end of the process.
func Try(file *os.File) (bool, error) { return try(file) }
