// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command generate writes the pages of docs/reference. Run it from the root of the module.
package main

import (
	"fmt"
	"os"

	"github.com/prerig/prerig/internal/reference"
)

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write() error {
	files, err := reference.Files(".")
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(f.Path, []byte(f.Text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
