// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package dir reads a local directory as a source, for development. It reads everything into memory at once, so
// that a render sees one consistent state, stays inside the directory and leaves out .git.
package dir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// Read reads the files below a directory, except those of excluded directories, whichever path names them.
func Read(path string, limits tree.Limits, without ...string) (*tree.Tree, error) {
	return ReadExcept(path, limits, nil, without...)
}

// ReadExcept is Read without the files and directories that ignored reports, by their paths with slashes; it may be
// nil.
func ReadExcept(path string, limits tree.Limits, ignored func(name string, dir bool) bool, without ...string) (*tree.Tree, error) {
	var leftOut []fs.FileInfo
	for _, one := range without {
		if info, err := os.Stat(one); err == nil { // a missing directory has no files
			leftOut = append(leftOut, info)
		}
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("opening the source directory: %w", err)
	}
	defer root.Close()
	builder := tree.NewBuilder(limits)
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name != "." && ignored != nil && ignored(name, entry.IsDir()) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() {
			if entry.Name() == ".git" || name != "." && isAmong(root, name, leftOut) {
				return fs.SkipDir
			}
			return nil
		}
		return addEntry(builder, root, name, entry, limits)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the source directory %s: %w", path, err)
	}
	return builder.Build(), nil
}

// isAmong reports whether a directory is one of some.
func isAmong(root *os.Root, name string, dirs []fs.FileInfo) bool {
	if len(dirs) == 0 {
		return false
	}
	info, err := root.Lstat(name)
	return err == nil && slices.ContainsFunc(dirs, func(dir fs.FileInfo) bool { return os.SameFile(dir, info) })
}

func addEntry(builder *tree.Builder, root *os.Root, name string, entry fs.DirEntry, limits tree.Limits) error {
	switch {
	case entry.Type()&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		if err != nil {
			return err
		}
		return builder.Add(name, tree.Link, []byte(target))
	case !entry.Type().IsRegular():
		// A socket or a pipe in the directory is not part of the source.
		return nil
	}
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if limits.FileBytes > 0 && info.Size() > limits.FileBytes {
		// Only a render that reads it is refused.
		return builder.AddLarge(name, info.Size())
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return errors.Join(err)
	}
	mode := tree.File
	if info.Mode()&0o111 != 0 {
		mode = tree.Executable
	}
	return builder.Add(name, mode, content)
}
