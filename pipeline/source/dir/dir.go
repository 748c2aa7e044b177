// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package dir reads a local directory as a source, for development. It takes everything into memory at once, so that a
// render sees one state of it, stays inside the directory and leaves out .git.
package dir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// Read takes the files below a directory.
func Read(path string, limits tree.Limits) (*tree.Tree, error) {
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
		if entry.IsDir() {
			if entry.Name() == ".git" {
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

func addEntry(builder *tree.Builder, root *os.Root, name string, entry fs.DirEntry, limits tree.Limits) error {
	switch {
	case entry.Type()&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		if err != nil {
			return err
		}
		return builder.Add(name, tree.Link, []byte(target))
	case !entry.Type().IsRegular():
		// A socket or a pipe that happens to be there is not part of the source.
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
