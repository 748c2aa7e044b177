// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"
)

// ChangedFiles returns the paths at which two trees have different files, links and submodules, sorted. The trees may be of
// different objects: files with different IDs are compared by their content. What changes behind a symbolic link has its
// path through the link, too.
func ChangedFiles(before, after *Tree) ([]string, error) {
	c := &fileComparison{before: before, after: after, changed: map[string]bool{}, links: map[string][]string{}}
	if err := c.compare("."); err != nil {
		return nil, err
	}
	for range maxLinkDepth {
		if !c.followLinks() {
			break
		}
	}
	return slices.Sorted(maps.Keys(c.changed)), nil
}

// maxLinkDepth is through how many links on one path a change is followed.
const maxLinkDepth = 4

type fileComparison struct {
	before, after *Tree
	changed       map[string]bool
	links         map[string][]string // the targets of links at both ends
}

// compare compares what both trees have at a directory, which may be missing in one of them.
func (c *fileComparison) compare(at string) error {
	old, now := c.before.entriesAt(at), c.after.entriesAt(at)
	names := maps.Clone(old)
	maps.Copy(names, now)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, hadIt := old[name]
		b, hasIt := now[name]
		full := path.Join(at, name)
		for i, entry := range []Entry{a, b} {
			if entry.Mode == Link {
				if found, err := []*Tree{c.before, c.after}[i].findPath(full, nil); err == nil {
					c.links[full] = append(c.links[full], found.path)
				}
			}
		}
		if hadIt && a.Mode == Dir || hasIt && b.Mode == Dir {
			if err := c.compare(full); err != nil {
				return err
			}
		}
		isDirAtBoth := hadIt && hasIt && a.Mode == Dir && b.Mode == Dir
		isDirAtOne := hadIt != hasIt && names[name].Mode == Dir
		if isDirAtBoth || isDirAtOne || hadIt && hasIt && a.Mode == b.Mode && c.isSame(a, b) {
			continue
		}
		c.changed[full] = true
	}
	return nil
}

// entriesAt returns the entries of a directory by their names, none where there is no directory.
func (t *Tree) entriesAt(at string) map[string]Entry {
	out := map[string]Entry{}
	entries, err := t.Entries(at)
	if err != nil {
		return out
	}
	for _, entry := range entries {
		out[entry.Name] = entry
	}
	return out
}

func (c *fileComparison) isSame(a, b Entry) bool {
	if a.ID == b.ID {
		return true
	}
	if len(a.ID) == len(b.ID) || a.Mode == Submodule {
		return false
	}
	const most = 1 << 30
	old, errOld := c.before.readBlob(a.ID, most)
	now, errNow := c.after.readBlob(b.ID, most)
	return errOld == nil && errNow == nil && bytes.Equal(old, now)
}

// followLinks adds the paths of changes behind links, and reports whether there are new ones.
func (c *fileComparison) followLinks() (more bool) {
	var through []string
	for link, targets := range c.links {
		for _, target := range targets {
			for name := range c.changed {
				switch {
				case target == ".":
					through = append(through, path.Join(link, name))
				case name == target || strings.HasPrefix(name, target+"/"):
					through = append(through, path.Join(link, strings.TrimPrefix(name, target)))
				}
			}
		}
	}
	for _, name := range through {
		more = more || !c.changed[name]
		c.changed[name] = true
	}
	return more
}
