// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command generate draws the picture of the README. Run it from the root of the module.
package main

import (
	"fmt"
	"os"

	"github.com/prerig/prerig/internal/picture"
)

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write() error {
	review, err := os.ReadFile(picture.Source)
	if err != nil {
		return fmt.Errorf("reading the review: %w", err)
	}
	drawn, err := picture.Review(string(review))
	if err != nil {
		return err
	}
	return os.WriteFile(picture.Target, drawn, 0o644)
}
