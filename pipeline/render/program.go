// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"os"
	"path/filepath"
)

// Program is the name of the renderer as a program of its own, in the directory of the one that starts it. It links nothing but the
// render, so that it starts faster and has less of itself in memory.
const Program = "prerig-render"

// builtWith is the identity of the Program that was built together with this one, which the linker sets; "" where none was.
var builtWith string

// rendererCommand returns what starts a renderer beside the program self: the Program, if it is the very one that was built together with
// self, or self itself. Both render the same; another Program, of another version, might not.
func rendererCommand(self, built string) []string {
	beside := filepath.Join(filepath.Dir(self), Program)
	if built != "" {
		if id, err := identify(beside); err == nil && id == built {
			return []string{beside}
		}
	}
	return []string{self, Command}
}

// defaultCommand starts a renderer where nobody says how.
func defaultCommand() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	return rendererCommand(self, builtWith), nil
}
