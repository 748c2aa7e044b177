// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

// Restore returns the root directory that results from giving files the contents with these hashes, which the repository has in its
// history; the zero hash removes one. It reads none of them.
func (d *Draft) Restore(root Hash, files map[string]Hash) (Hash, error) {
	return d.editDirectory(root, files, "")
}
