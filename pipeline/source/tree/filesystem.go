// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"time"
)

// FS returns the standard library's view of a reader. It is read-only.
func FS(r Reader) fs.FS { return &ioFS{r} }

type ioFS struct{ r Reader }

func (f *ioFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	info, err := f.r.Lookup(name)
	if err != nil {
		return nil, err
	}
	if info.Dir {
		return &openDir{fsys: f, name: name}, nil
	}
	content, err := f.r.Read(name)
	if err != nil {
		return nil, err
	}
	return &openFile{Reader: bytes.NewReader(content),
		info: fileInfo{name: path.Base(name), size: int64(len(content))}}, nil
}

// ReadFile implements fs.ReadFileFS. The result is a copy, as callers may change it.
func (f *ioFS) ReadFile(name string) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	content, err := f.r.Read(name)
	return bytes.Clone(content), err
}

// ReadDir implements fs.ReadDirFS.
func (f *ioFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	list, err := f.r.List(name)
	if err != nil {
		return nil, err
	}
	entries := make([]fs.DirEntry, 0, len(list))
	for _, info := range list {
		entries = append(entries, dirEntry{fsys: f, path: info.Path, dir: info.Dir})
	}
	return entries, nil
}

// dirEntry opens the file only when its size is asked for.
type dirEntry struct {
	fsys *ioFS
	path string
	dir  bool
}

func (e dirEntry) Name() string { return path.Base(e.path) }
func (e dirEntry) IsDir() bool  { return e.dir }
func (e dirEntry) Type() fs.FileMode {
	return fileInfo{dir: e.dir}.Mode().Type()
}

func (e dirEntry) Info() (fs.FileInfo, error) {
	opened, err := e.fsys.Open(e.path)
	if err != nil {
		return nil, err
	}
	return opened.Stat()
}

// fileInfo has no times and no owner: content is all that counts. The size is known of opened files only.
type fileInfo struct {
	name string
	size int64
	dir  bool
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.dir }
func (i fileInfo) Sys() any           { return nil }
func (i fileInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

type openFile struct {
	*bytes.Reader
	info fileInfo
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

type openDir struct {
	fsys *ioFS
	name string
	rest []fs.DirEntry
	read bool
}

func (d *openDir) Stat() (fs.FileInfo, error) {
	return fileInfo{name: path.Base(d.name), dir: true}, nil
}
func (d *openDir) Close() error { return nil }
func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errors.New("is a directory")}
}

// ReadDir implements fs.ReadDirFile.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if !d.read {
		entries, err := d.fsys.ReadDir(d.name)
		if err != nil {
			return nil, err
		}
		d.rest, d.read = entries, true
	}
	if n <= 0 {
		entries := d.rest
		d.rest = nil
		return entries, nil
	}
	if len(d.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.rest))
	entries := d.rest[:n]
	d.rest = d.rest[n:]
	return entries, nil
}
