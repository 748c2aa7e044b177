// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command style measures the sources below a directory and, with -check, fails on what the style guide rules out.
package main

import (
	"os"

	"github.com/prerig/prerig/internal/style"
)

func main() {
	os.Exit(style.Main(os.Args[1:], os.Stdout, os.Stderr))
}
