// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"path"
	"strings"
)

// Replaced is a tree with another content of one file, which the tree itself may not have. Lists are those of the tree.
type Replaced struct {
	Reader
	// Path is the canonical path of the file.
	Path    string
	Content []byte
}

// Lookup implements Reader.
func (r Replaced) Lookup(name string) (Info, error) {
	if r.isPath(name) {
		return Info{Path: r.Path}, nil
	}
	return r.Reader.Lookup(name)
}

// Read implements Reader. The file is also read through links.
func (r Replaced) Read(name string) ([]byte, error) {
	if r.isPath(name) {
		return r.Content, nil
	}
	if path.Base(name) == path.Base(r.Path) {
		if info, err := r.Reader.Lookup(name); err == nil && info.Path == r.Path {
			return r.Content, nil
		}
	}
	return r.Reader.Read(name)
}

func (r Replaced) isPath(name string) bool {
	return strings.TrimPrefix(path.Clean("/"+name), "/") == r.Path
}
