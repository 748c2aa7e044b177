// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package moduleroot finds the module's directory, for tests: those of a package run in its own.
package moduleroot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Dir returns the directory of the go.mod above the working directory.
func Dir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("finding the module: there is no go.mod above the working directory")
		}
	}
}
