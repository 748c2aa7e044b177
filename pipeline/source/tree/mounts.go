// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Mounts reads a tree with further ones at names of its root. They are seen only by who asks for their names: no list
// has them, and no link or ".." of one leads into another.
type Mounts struct {
	Reader
	below map[string]Reader
}

// NewMounts returns a reader without any mount.
func NewMounts(r Reader) *Mounts { return &Mounts{Reader: r, below: map[string]Reader{}} }

// Add puts a reader at a name of the root. It must not be called while others read.
func (m *Mounts) Add(name string, r Reader) { m.below[name] = r }

// mountAt returns the reader for a path, and the path within it.
func (m *Mounts) mountAt(name string) (r Reader, at, rest string) {
	at, rest, _ = strings.Cut(strings.Trim(name, "/"), "/")
	if r = m.below[at]; r == nil {
		return nil, "", ""
	}
	return r, at, rest
}

// Lookup implements Reader.
func (m *Mounts) Lookup(name string) (Info, error) {
	r, at, rest := m.mountAt(name)
	if r == nil {
		return m.Reader.Lookup(name)
	}
	info, err := r.Lookup(rest)
	info.Path = path.Join(at, info.Path)
	return info, mountError(at, err)
}

// Read implements Reader.
func (m *Mounts) Read(name string) ([]byte, error) {
	r, at, rest := m.mountAt(name)
	if r == nil {
		return m.Reader.Read(name)
	}
	content, err := r.Read(rest)
	return content, mountError(at, err)
}

// List implements Reader.
func (m *Mounts) List(name string) ([]Info, error) {
	r, at, rest := m.mountAt(name)
	if r == nil {
		return m.Reader.List(name)
	}
	list, err := r.List(rest)
	out := make([]Info, len(list))
	for i, info := range list {
		info.Path = path.Join(at, info.Path)
		out[i] = info
	}
	return out, mountError(at, err)
}

var errMountedSubmodule = errors.New("is inside a Git submodule of a remote base whose repository is not allowed, or that the base's URL leaves out (spec.build.remoteBases)")

// mountError returns an error of a mount with the full path.
func mountError(at string, err error) error {
	var of *fs.PathError
	if !errors.As(err, &of) {
		return err
	}
	cause := of.Err
	if errors.Is(cause, ErrSubmodule) {
		cause = errMountedSubmodule
	}
	return &fs.PathError{Op: of.Op, Path: path.Join(at, of.Path), Err: cause}
}
