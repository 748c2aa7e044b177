// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile bounds one file of pipelines.
const maxFile = 8 << 20

// readDir reads every file, in the order of their names. Hidden files and directories are left out, as mounted ConfigMaps
// keep their versions in them.
func readDir(dir string) ([]Entry, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("reading pipelines: %s is not a directory", dir)
	}
	// A directory behind a link is walked where it is: WalkDir would take the link for a file.
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("reading pipelines: %w", err)
	}
	var out []Entry
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == dir {
				return err
			}
			out = append(out, unreadableEntry(relativePath(dir, path), err)...)
			return nil
		}
		if path != dir && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() || !isManifest(path) {
			return nil
		}
		out = append(out, readFile(path, relativePath(dir, path))...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading pipelines: %w", err)
	}
	return out, nil
}

// unreadableEntry is a file or directory of which nothing can be read.
func unreadableEntry(name string, err error) []Entry {
	return []Entry{{Key: name, File: name, Digest: errorText(err), Err: err, Opaque: true}}
}

// isManifest reports whether a file of this name is read.
func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

func relativePath(dir, path string) string {
	if name, err := filepath.Rel(dir, path); err == nil {
		return filepath.ToSlash(name)
	}
	return path
}

func readFile(path, name string) []Entry {
	info, err := os.Stat(path)
	if err != nil {
		return unreadableEntry(name, fmt.Errorf("reading %s: %w", name, err))
	}
	if info.IsDir() {
		return nil
	}
	if info.Size() > maxFile {
		return unreadableEntry(name, fmt.Errorf("reading %s: the file has %d bytes, more than %d", name, info.Size(), maxFile))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return unreadableEntry(name, fmt.Errorf("reading %s: %w", name, err))
	}
	return Parse(name, data)
}
