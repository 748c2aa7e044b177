// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package filelock locks files among processes.
package filelock

import "os"

// Try takes the exclusive lock of an open file, and reports whether it has it now; somebody else has it where it is false. The lock ends
// when the file is closed, also by the end of the process.
func Try(file *os.File) (bool, error) { return try(file) }
