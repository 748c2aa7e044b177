// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "path"

// IsFileName reports whether a file with this name, or at this path, is read as a manifest: .yaml, .yml or .json.
func IsFileName(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
