// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"slices"
)

// Entries returns what a directory holds as it is stored, links among it as links. It is for readers that must go on
// where a single link leads nowhere or out of the tree.
func (t *Tree) Entries(name string) ([]Entry, error) {
	found, err := t.findPath(name, nil)
	if err != nil {
		return nil, err
	}
	if found.entry.Mode != Dir {
		return nil, pathError(name, errors.New("is not a directory"))
	}
	d, err := t.entriesOf(found)
	if err != nil {
		return nil, pathError(found.path, err)
	}
	return slices.Clone(d.entries), nil
}
