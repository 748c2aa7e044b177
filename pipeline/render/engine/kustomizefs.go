// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// kustomizeFS is kustomize's view of a tree, whose root is "/". It is read-only.
type kustomizeFS struct {
	r tree.Reader
	// handedOut bounds the bytes of all files that kustomize reads; nil does not.
	handedOut *readMeter
}

// readMeter counts what is read, each time that it is: a hundred generators of one file keep a hundred copies of it, and the result is
// only measured at its end.
type readMeter struct{ left, limit int64 }

// newReadMeter returns the meter of a build with a result of at most so many bytes: what is read may be twice as long, since patches
// delete. Without a limit it is nil.
func newReadMeter(output int64) *readMeter {
	if output <= 0 {
		return nil
	}
	return &readMeter{left: 2 * output, limit: 2 * output}
}

// add counts bytes, and returns an error where they are more than may be read.
func (m *readMeter) add(n int) error {
	if m == nil {
		return nil
	}
	if m.left -= int64(n); m.left < 0 {
		return &tree.LimitError{What: "size of all files that kustomize reads, in bytes, each as often as it is read", Limit: m.limit}
	}
	return nil
}

var errReadOnly = errors.New("the source tree is read-only")

func (f kustomizeFS) Create(name string) (filesys.File, error) {
	return nil, &fs.PathError{Op: "creating", Path: name, Err: errReadOnly}
}

func (f kustomizeFS) Mkdir(name string) error {
	return &fs.PathError{Op: "creating", Path: name, Err: errReadOnly}
}

func (f kustomizeFS) MkdirAll(name string) error { return f.Mkdir(name) }

func (f kustomizeFS) RemoveAll(name string) error {
	return &fs.PathError{Op: "removing", Path: name, Err: errReadOnly}
}

func (f kustomizeFS) WriteFile(name string, _ []byte) error {
	return &fs.PathError{Op: "writing", Path: name, Err: errReadOnly}
}

// readOnlyFile is an open file that refuses writes.
type readOnlyFile struct{ fs.File }

func (readOnlyFile) Write([]byte) (int, error) { return 0, errReadOnly }

func (f kustomizeFS) Open(name string) (filesys.File, error) {
	file, err := tree.FS(f.r).Open(relativeToRoot(name))
	return readOnlyFile{file}, err
}

func (f kustomizeFS) IsDir(name string) bool {
	info, err := f.r.Lookup(name)
	return err == nil && info.Dir
}

func (f kustomizeFS) Exists(name string) bool {
	_, err := f.r.Lookup(name)
	return err == nil
}

func (f kustomizeFS) ReadFile(name string) ([]byte, error) {
	content, err := f.r.Read(name)
	if err == nil {
		err = f.handedOut.add(len(content))
	}
	return content, err
}

func (f kustomizeFS) ReadDir(name string) ([]string, error) {
	list, err := f.r.List(name)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(list))
	for _, info := range list {
		names = append(names, path.Base(info.Path))
	}
	return names, nil
}

func (f kustomizeFS) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	info, err := f.r.Lookup(name)
	if err != nil {
		return "", "", err
	}
	absolute := path.Join("/", info.Path)
	if info.Dir {
		return filesys.ConfirmedDir(absolute), "", nil
	}
	return filesys.ConfirmedDir(path.Dir(absolute)), path.Base(absolute), nil
}

func (f kustomizeFS) Glob(pattern string) ([]string, error) {
	found, err := fs.Glob(tree.FS(f.r), strings.TrimPrefix(pattern, "/"))
	if err != nil || !strings.HasPrefix(pattern, "/") {
		return found, err
	}
	for i := range found {
		found[i] = "/" + found[i]
	}
	return found, nil
}

func (f kustomizeFS) Walk(root string, walk filepath.WalkFunc) error {
	return fs.WalkDir(tree.FS(f.r), relativeToRoot(root), func(name string, entry fs.DirEntry, err error) error {
		return walk(path.Join("/", name), entryInfo{entry}, err)
	})
}

// relativeToRoot returns a path below the root as the standard library names it.
func relativeToRoot(name string) string {
	if name = strings.TrimPrefix(path.Clean(name), "/"); name == "" {
		return "."
	}
	return name
}

// entryInfo describes an entry of a directory without reading it, so it has no size.
type entryInfo struct{ fs.DirEntry }

func (i entryInfo) Size() int64        { return 0 }
func (i entryInfo) Mode() fs.FileMode  { return i.Type() | 0o444 }
func (i entryInfo) ModTime() time.Time { return time.Time{} }
func (i entryInfo) Sys() any           { return nil }
