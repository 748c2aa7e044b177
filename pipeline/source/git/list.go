// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// List returns the names of the files in a directory below a root directory, sorted; none where there is no such directory.
func (d *Draft) List(root Hash, dir string) ([]string, error) {
	entries, err := d.treeEntries(root)
	if err != nil {
		return nil, err
	}
	first, rest, deeper := strings.Cut(dir, "/")
	entry, ok := entries[first]
	if !ok || entry.Mode != filemode.Dir {
		return nil, nil
	}
	if deeper {
		return d.List(entry.Hash, rest)
	}
	if entries, err = d.treeEntries(entry.Hash); err != nil {
		return nil, err
	}
	var names []string
	for name, e := range entries {
		if e.Mode != filemode.Dir {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
