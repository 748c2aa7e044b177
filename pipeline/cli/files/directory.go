// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// place is where files are written: the whole file system, or one directory of it (*os.Root).
type place interface {
	Open(name string) (*os.File, error)
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte, perm fs.FileMode) error
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	MkdirAll(path string, perm fs.FileMode) error
	Rename(from, to string) error
	Remove(name string) error
}

// wholeSystem is the place of files that the user has named one by one.
type wholeSystem struct{}

func (wholeSystem) Open(name string) (*os.File, error)        { return os.Open(name) }
func (wholeSystem) ReadFile(name string) ([]byte, error)      { return os.ReadFile(name) }
func (wholeSystem) Stat(name string) (fs.FileInfo, error)     { return os.Stat(name) }
func (wholeSystem) Lstat(name string) (fs.FileInfo, error)    { return os.Lstat(name) }
func (wholeSystem) MkdirAll(path string, p fs.FileMode) error { return os.MkdirAll(path, p) }
func (wholeSystem) Rename(from, to string) error              { return os.Rename(from, to) }
func (wholeSystem) Remove(name string) error                  { return os.Remove(name) }

func (wholeSystem) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}

func (wholeSystem) WriteFile(name string, data []byte, perm fs.FileMode) error {
	return os.WriteFile(name, data, perm)
}

// Directory is a directory that files are written to. It may be a link itself. Links below it may come from the
// author of its repository, so none of them can lead a write or a removal out of it.
type Directory struct {
	name string // as the user would write it
	real string // behind all links, absolute
	root *os.Root
}

// OpenDirectory opens a directory, and makes it if it is missing. It is to be closed after what was made with it is
// written.
func OpenDirectory(name string) (*Directory, error) {
	failed := func(err error) (*Directory, error) {
		return nil, fmt.Errorf("writing into the directory %s: %w", name, innerError(err))
	}
	if err := os.MkdirAll(name, 0o777); err != nil {
		return failed(err)
	}
	real, err := filepath.Abs(name)
	if err == nil {
		real, err = filepath.EvalSymlinks(real) // in this order, as the current directory may have links in its name
	}
	if err != nil {
		return failed(err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return failed(err)
	}
	return &Directory{name: name, real: real, root: root}, nil
}

// Close ends the work with the directory.
func (d *Directory) Close() error { return d.root.Close() }

// FS returns the files of the directory for reading. Links that lead out of it are errors.
func (d *Directory) FS() fs.FS { return d.root.FS() }

// To is the output that makes the file at rel below the directory, or replaces it. A link to another place in the
// directory is followed.
func (d *Directory) To(rel string, data []byte) (Output, error) {
	out := Output{Path: filepath.Join(d.name, rel), Data: data, in: d.root, target: filepath.Clean(rel)}
	target, err := d.followLinks(out.target)
	isNew := errors.Is(err, fs.ErrNotExist)
	if isNew {
		target, err = d.newTarget(out.target)
	}
	if err != nil {
		return Output{}, fmt.Errorf("writing %s: %w", out.Path, innerError(err))
	}
	out.target = target
	if isNew {
		return out, out.checkNew()
	}
	return out.readTarget()
}

// newTarget returns the path below the directory of a file that does not exist, with links resolved in the part of
// the path that exists.
func (d *Directory) newTarget(rel string) (string, error) {
	parent := filepath.Dir(rel)
	around, err := d.followLinks(parent)
	if errors.Is(err, fs.ErrNotExist) && parent != "." {
		around, err = d.newTarget(parent)
	}
	return filepath.Join(around, filepath.Base(rel)), err
}

// followLinks returns the path below the directory of the file at rel, without links. It refuses one that a link leads
// out of the directory, also where the file does not exist but a directory on the way does.
func (d *Directory) followLinks(rel string) (string, error) {
	real, err := resolvePath(filepath.Join(d.real, rel))
	if errors.Is(err, fs.ErrNotExist) && rel != "." {
		if _, outside := d.followLinks(filepath.Dir(rel)); outside != nil && !errors.Is(outside, fs.ErrNotExist) {
			return "", outside
		}
	}
	if err != nil {
		return "", err
	}
	if !isBelow(d.real, real) {
		return "", fmt.Errorf("a link points to %s, which is not in %s; remove the link", real, d.name)
	}
	return filepath.Rel(d.real, real)
}

// Remove removes the file at rel below the directory, and its parent directories that are empty then. It reports
// whether such a file existed. Links to other places in the directory are followed, except for the last element.
func (d *Directory) Remove(rel string) (bool, error) {
	failed := func(err error) (bool, error) {
		return false, fmt.Errorf("removing %s: %w", filepath.Join(d.name, rel), innerError(err))
	}
	rel = filepath.Clean(rel)
	around, err := d.followLinks(filepath.Dir(rel))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return failed(err)
	}
	rel = filepath.Join(around, filepath.Base(rel))
	info, err := d.root.Lstat(rel)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return false, nil
	}
	if err == nil {
		err = d.root.Remove(rel)
	}
	if err != nil {
		return failed(err)
	}
	for ; around != "."; around = filepath.Dir(around) {
		if d.root.Remove(around) != nil {
			break // it holds other files
		}
	}
	return true, nil
}
