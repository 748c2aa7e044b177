// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// List returns the names of the files in a directory below a root directory, sorted, or none if the directory does
// not exist.
func (d *Draft) List(root Hash, dir string) ([]string, error) {
	entries, err := d.treeEntries(root)
	if err != nil {
		return nil, err
	}
	first, rest, deeper := strings.Cut(dir, "/")
	entry, ok := entries[first]
	if !ok || entry.Mode != filemode.Dir {
		return nil, nil
	}
	if deeper {
		return d.List(entry.Hash, rest)
	}
	if entries, err = d.treeEntries(entry.Hash); err != nil {
		return nil, err
	}
	var names []string
	for name, e := range entries {
		if e.Mode != filemode.Dir {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// FileChange is a file that differs between two trees: the zero hash means that the file does not exist.
type FileChange struct{ Old, New Hash }

// Changes returns the files that differ between two root directories, by their paths. Directories that are equal are not read. A link
// and a file of one content are equal to it, as they are to all that Prerig writes.
func (d *Draft) Changes(from, to Hash) (map[string]FileChange, error) {
	out := map[string]FileChange{}
	return out, d.addChanges(out, "", from, to)
}

func (d *Draft) addChanges(out map[string]FileChange, at string, from, to Hash) error {
	if from == to {
		return nil
	}
	old, err := d.treeEntries(from)
	if err != nil {
		return err
	}
	now, err := d.treeEntries(to)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for name := range old {
		names[name] = true
	}
	for name := range now {
		names[name] = true
	}
	for name := range names {
		oldFile, oldDir := splitEntry(old[name])
		newFile, newDir := splitEntry(now[name])
		if oldFile != newFile {
			out[at+name] = FileChange{oldFile, newFile}
		}
		if err := d.addChanges(out, at+name+"/", oldDir, newDir); err != nil {
			return err
		}
	}
	return nil
}

// splitEntry returns what an entry of a directory is: a file, or a directory.
func splitEntry(e object.TreeEntry) (file, dir Hash) {
	if e.Mode == filemode.Dir {
		return Hash{}, e.Hash
	}
	return e.Hash, Hash{}
}
