// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package files

import "os"

func openFile(path string) (*os.File, error) { return os.Open(path) }
