// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"path"
	"strings"
)

// Below reads a directory of a tree as a tree of its own. A path with ".." does not leave it.
type Below struct {
	Reader
	Root string
}

func (b Below) inside(name string) string { return path.Join(b.Root, path.Clean("/"+name)) }

func (b Below) relative(at string) string {
	if at = strings.TrimPrefix(strings.TrimPrefix(at, b.Root), "/"); at == "" {
		return "."
	}
	return at
}

// Lookup implements Reader.
func (b Below) Lookup(name string) (Info, error) {
	info, err := b.Reader.Lookup(b.inside(name))
	info.Path = b.relative(info.Path)
	return info, err
}

// Read implements Reader.
func (b Below) Read(name string) ([]byte, error) { return b.Reader.Read(b.inside(name)) }

// List implements Reader.
func (b Below) List(name string) ([]Info, error) {
	list, err := b.Reader.List(b.inside(name))
	out := make([]Info, len(list))
	for i, info := range list {
		info.Path = b.relative(info.Path)
		out[i] = info
	}
	return out, err
}
