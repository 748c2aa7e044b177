// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"hash/maphash"
	"slices"
)

// Footprint holds the places in a tree that the answers to a record come from: the answers are the same in every
// tree that does not differ in these. It allows checking many records against one change without checking each of
// their paths again. Paths are stored as digests that are valid within this process; a collision only causes an
// unnecessary check of a record.
type Footprint struct{ paths []uint64 }

// Changes are where two trees differ.
type Changes struct{ paths map[uint64]struct{} }

var pathSeed = maphash.MakeSeed()

func pathDigest(path string) uint64 { return maphash.String(pathSeed, path) }

// Look is Affected that also returns the footprint of a record that is not affected, or nil if no reliable one
// exists: with submodules in the tree, or after a read error.
func (r Record) Look(t *Tree) (reason string, affected bool, at *Footprint) {
	if len(t.mounts) > 0 || slices.ContainsFunc(r, func(a Access) bool { return a.Outcome == outcomeError }) {
		reason, affected = r.Affected(t)
		return reason, affected, nil
	}
	at = &Footprint{paths: make([]uint64, 0, 2*len(r))}
	reason, affected = r.findAffected(t, func(_ string, _ int, path string) error {
		at.paths = append(at.paths, pathDigest(path))
		return nil
	})
	if affected {
		return reason, true, nil
	}
	slices.Sort(at.paths)
	at.paths = slices.Clip(slices.Clone(slices.Compact(at.paths)))
	return "", false, at
}

// maxChanges bounds a comparison: beyond it, looking at the records themselves is no slower.
const maxChanges = 10_000

// Since compares with another tree of the same objects, specified by its ID. It returns false if that is not
// possible, or not quickly.
func (t *Tree) Since(earlier string) (*Changes, bool) {
	c := &treeComparison{tree: t, changes: &Changes{paths: map[uint64]struct{}{}}}
	if len(t.mounts) > 0 || !c.compareDirectories(earlier, t.root, ".") {
		return nil, false
	}
	return c.changes, true
}

// fewChanges is up to how many changes each is looked for in a footprint, and not the other way round.
const fewChanges = 4

// Touch reports whether a record with this footprint could be affected.
func (c *Changes) Touch(at *Footprint) bool {
	if len(c.paths) <= fewChanges {
		for path := range c.paths {
			if _, ok := slices.BinarySearch(at.paths, path); ok {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(at.paths, func(path uint64) bool { _, ok := c.paths[path]; return ok })
}

type treeComparison struct {
	tree    *Tree
	changes *Changes
	seen    int // entries
}

// compareDirectories compares two directories and records the entries that differ. A directory in both is compared
// recursively. An entry that appears, disappears or changes its type also changes the listing of its directory.
func (c *treeComparison) compareDirectories(before, after, at string) bool {
	if before == after {
		return true
	}
	old, errOld := c.tree.readDirectory(before)
	now, errNow := c.tree.readDirectory(after)
	if errOld != nil || errNow != nil {
		return false
	}
	// The entries of directories that are the same are not among these.
	if c.seen += len(old.entries) + len(now.entries); c.seen > 10*maxChanges {
		return false
	}
	prefix := at + "/"
	if at == "." {
		prefix = ""
	}
	for _, entry := range now.entries {
		i, ok := old.byName[entry.Name]
		switch {
		case !ok:
			c.addChanged(prefix+entry.Name, at+"/")
		case entry.Mode == Dir && old.entries[i].Mode == Dir:
			if !c.compareDirectories(old.entries[i].ID, entry.ID, prefix+entry.Name) {
				return false
			}
		case entry.Mode != old.entries[i].Mode:
			c.addChanged(prefix+entry.Name, at+"/")
		case entry.ID != old.entries[i].ID:
			c.addChanged(prefix + entry.Name)
		}
	}
	for _, entry := range old.entries {
		if _, ok := now.byName[entry.Name]; !ok {
			c.addChanged(prefix+entry.Name, at+"/")
		}
	}
	return len(c.changes.paths) <= maxChanges
}

func (c *treeComparison) addChanged(paths ...string) {
	for _, path := range paths {
		c.changes.paths[pathDigest(path)] = struct{}{}
	}
}

// readDirectory reads a directory without keeping it.
func (t *Tree) readDirectory(id string) (*dirEntries, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d, ok := t.dirs[id]; ok {
		return d, nil
	}
	if d, ok := t.earlier[id]; ok {
		return d, nil
	}
	return t.loadDirectory(id)
}
