// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"
)

// ErrOccupied is the cause of the error about a source that is to be mounted where the tree has something.
var ErrOccupied = errors.New("the source of the pipeline has something there already; mount it elsewhere, or remove that")

// Combine returns a tree with the trees of further sources mounted at directories of it, as if they were checked
// out in place: listings show them, and paths lead into them and out of them again. Links do not: one that leads
// from a source into another is rejected, as it is when the source is read alone. Mount directories must not be
// nested. If the tree itself has a file at a mount directory, the error is ErrOccupied, unless it is replaced.
func Combine(base *Tree, sources map[string]*Tree, replace bool) (*Tree, error) {
	if len(sources) == 0 {
		return base, nil
	}
	c := New(base.objects, base.root)
	c.base, c.sources, c.overlay = base, sources, map[string]*dirEntries{}
	maps.Copy(c.mounts, base.mounts)
	for _, at := range slices.Sorted(maps.Keys(sources)) {
		if err := c.mountSource(at, sources[at], replace); err != nil {
			return nil, fmt.Errorf("mounting a source at %s: %w", at, err)
		}
	}
	return c, nil
}

// mountSource mounts a tree at a directory, creating missing parents.
func (t *Tree) mountSource(at string, from *Tree, replace bool) error {
	dir, name := ".", ""
	for rest := at; rest != ""; dir = path.Join(dir, name) {
		name, rest, _ = strings.Cut(rest, "/")
		entries, err := t.overlayOf(dir)
		if err != nil {
			return err
		}
		i, exists := entries.byName[name]
		switch {
		case rest != "" && exists && entries.entries[i].Mode == Dir:
		case rest != "" && exists:
			return fmt.Errorf("%s is not a directory: %w", path.Join(dir, name), ErrOccupied)
		case rest != "":
			// It has no ID that an object could have.
			entries.addOrReplaceEntry(Entry{Name: name, Mode: Dir, ID: "mounted " + path.Join(dir, name)})
		case exists && !replace:
			return ErrOccupied
		default:
			entries.addOrReplaceEntry(Entry{Name: name, Mode: Submodule, ID: from.root})
		}
	}
	maps.DeleteFunc(t.mounts, func(name string, _ *Tree) bool { return name == at || strings.HasPrefix(name, at+"/") })
	t.mounts[at] = from
	for name, sub := range from.mounts {
		t.mounts[path.Join(at, name)] = sub
	}
	return nil
}

// overlayOf returns the entries of a directory that another source is in, for a change.
func (t *Tree) overlayOf(dir string) (*dirEntries, error) {
	if known, ok := t.overlay[dir]; ok {
		return known, nil
	}
	own := &dirEntries{byName: map[string]int{}}
	t.overlay[dir] = own
	found, err := t.base.findPath(dir, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return own, nil // it is made
	}
	if err != nil {
		return nil, err
	}
	d, err := found.tree.cachedDirectory(found.entry.ID)
	if err != nil {
		return nil, err
	}
	for _, entry := range d.entries {
		own.addOrReplaceEntry(entry)
	}
	return own, nil
}

func (d *dirEntries) addOrReplaceEntry(entry Entry) {
	if i, ok := d.byName[entry.Name]; ok {
		d.entries[i] = entry
		return
	}
	d.byName[entry.Name] = len(d.entries)
	d.entries = append(d.entries, entry)
}

// entriesOf returns the entries of a directory.
func (t *Tree) entriesOf(dir foundNode) (*dirEntries, error) {
	if d, ok := t.overlay[dir.path]; ok {
		return d, nil
	}
	return dir.tree.cachedDirectory(dir.entry.ID)
}

// SourceOf returns the directory of the further source that a path is in, "" for the tree's own source.
func (t *Tree) SourceOf(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	for at := range t.sources {
		if name == at || strings.HasPrefix(name, at+"/") {
			return at
		}
	}
	return ""
}

// combinedID is a digest of the trees and where they are.
func (t *Tree) combinedID() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", t.base.ID())
	names := slices.Collect(maps.Keys(t.sources))
	sort.Strings(names)
	for _, at := range names {
		fmt.Fprintf(h, "%s %s\n", at, t.sources[at].ID())
	}
	return hex.EncodeToString(h.Sum(nil))
}
