// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package tree is an immutable file tree of one revision of a source, read on demand from content-addressed objects. It
// resolves symbolic links inside the tree and refuses those that lead out, bounds what a reader may take, and records
// what was read and what was looked for, so that a later revision can be compared with that record alone. It never
// reads the machine's own file system and never writes.
package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"sync"
)

// Mode is the type of a directory entry.
type Mode uint8

// The kinds of entries.
const (
	File Mode = iota
	Executable
	Link
	Dir
	Submodule
)

// Entry is one entry of a directory.
type Entry struct {
	// Name in its directory.
	Name string
	// Mode is the type of the entry.
	Mode Mode
	// ID is the digest of its content; equal IDs mean equal content.
	ID string
}

// Objects provides the content for IDs. Implementations are safe for concurrent use.
type Objects interface {
	// Tree returns the entries of a directory.
	Tree(id string) ([]Entry, error)
	// Blob returns the content of a file or the target of a link, and a LimitError where it is longer than max.
	Blob(id string, max int64) ([]byte, error)
}

// ErrOutside is the cause of errors about paths and links that lead out of the tree.
var ErrOutside = errors.New("leads out of the source tree")

// errManyLinks is the cause of errors about links that lead to each other.
var errManyLinks = errors.New("too many symbolic links")

// ErrSubmodule is the cause of errors about paths inside a submodule that was not fetched.
var ErrSubmodule = errors.New("is inside a Git submodule, and the pipeline does not enable submodules (source.git.submodules)")

// LimitError reports which limit was exceeded.
type LimitError struct {
	// What was too much, such as "size of big.bin".
	What string
	// Limit that it passed.
	Limit int64
}

// Error names what was too much and the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s is over the limit of %d", e.What, e.Limit)
}

// maxLinks bounds how many symbolic links one lookup may follow.
const maxLinks = 40

// maxCache bounds the bytes of file content that one tree keeps in memory.
const maxCache = 32 << 20

// Tree is the file tree of one revision. It is safe for use by several goroutines.
type Tree struct {
	objects Objects
	root    string

	mu      sync.Mutex
	dirs    map[string]*dirEntries
	earlier map[string]*dirEntries // of another revision; not changed
	blobs   map[string][]byte
	cached  int
	mounts  map[string]*Tree // of submodules and further sources, by their paths

	// What follows is set where further sources are in it, see Combine.
	base    *Tree
	sources map[string]*Tree       // by their directories
	overlay map[string]*dirEntries // directories that are not as base has them; not changed later
}

type dirEntries struct {
	entries []Entry
	byName  map[string]int
}

// New returns the tree whose root directory has the ID root.
func New(objects Objects, root string) *Tree {
	return &Tree{objects: objects, root: root, dirs: map[string]*dirEntries{}, blobs: map[string][]byte{},
		mounts: map[string]*Tree{}}
}

// Next returns the tree of another revision of the same objects. It does not reread directories that this one has
// read, since equal IDs mean equal directories.
func (t *Tree) Next(root string) *Tree {
	next := New(t.objects, root)
	t.mu.Lock()
	defer t.mu.Unlock()
	next.earlier = maps.Clone(t.dirs)
	return next
}

// ID of the root directory: equal IDs mean equal trees.
func (t *Tree) ID() string {
	if len(t.sources) > 0 {
		return t.combinedID()
	}
	return t.root
}

// WithMounts returns a tree of the same files with the trees of submodules at their paths.
func (t *Tree) WithMounts(mounts map[string]*Tree) *Tree {
	mounted := New(t.objects, t.root)
	mounted.mounts = mounts
	return mounted
}

// Submodule returns the commit that the tree names for the submodule at a path, or false if none exists.
func (t *Tree) Submodule(name string) (string, bool, error) {
	found, err := t.findPath(name, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil || found.entry.Mode != Submodule {
		return "", false, err
	}
	return found.entry.ID, true, nil
}

// foundNode is where a lookup ends.
type foundNode struct {
	entry Entry
	path  string // canonical: without links, "." for the root
	tree  *Tree  // that holds the entry, for submodules
}

func (t *Tree) rootNode() foundNode {
	root := foundNode{entry: Entry{Name: ".", Mode: Dir, ID: t.root}, path: ".", tree: t}
	if t.base != nil {
		root.tree = t.base // which has read some of it
	}
	return root
}

func (t *Tree) cachedDirectory(id string) (*dirEntries, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d, ok := t.dirs[id]; ok {
		return d, nil
	}
	if d, ok := t.earlier[id]; ok {
		t.dirs[id] = d
		return d, nil
	}
	d, err := t.loadDirectory(id)
	if err == nil {
		t.dirs[id] = d
	}
	return d, err
}

func (t *Tree) loadDirectory(id string) (*dirEntries, error) {
	entries, err := t.objects.Tree(id)
	if err != nil {
		return nil, err
	}
	d := &dirEntries{entries: entries, byName: make(map[string]int, len(entries))}
	for i, entry := range entries {
		d.byName[entry.Name] = i
	}
	return d, nil
}

// readBlob returns a file's content, and keeps it for who reads it next.
func (t *Tree) readBlob(id string, max int64) ([]byte, error) {
	content, err := t.readBlobOnce(id, max)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.blobs[id]; ok {
		return content, nil
	}
	if t.cached += len(content); t.cached > maxCache {
		t.blobs, t.cached = map[string][]byte{}, len(content)
	}
	t.blobs[id] = content
	return content, nil
}

// readBlobOnce returns a file's content, from the cache if possible, without adding it.
func (t *Tree) readBlobOnce(id string, max int64) ([]byte, error) {
	t.mu.Lock()
	content, ok := t.blobs[id]
	t.mu.Unlock()
	if !ok {
		return t.objects.Blob(id, max)
	}
	if int64(len(content)) > max {
		return nil, &LimitError{What: "size of the file", Limit: max}
	}
	return content, nil
}

// visitFunc is called for every directory that a lookup loads, so that a view can bound them, with the canonical
// path of the entry that it looks up in it; for a listing that is the directory's path with a trailing slash.
type visitFunc func(id string, entries int, path string) error

// findPath walks to a path, following links.
func (t *Tree) findPath(name string, visit visitFunc) (foundNode, error) {
	at := t.rootNode()
	stack := []foundNode{at}
	rest := splitPath(name)
	var link linkInside
	for links := 0; len(rest) > 0; link.parts-- {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(stack) == 1 {
				return foundNode{}, pathError(name, ErrOutside)
			}
			stack = stack[:len(stack)-1]
			if err := t.checkLink(link, stack[len(stack)-1].path, name); err != nil {
				return foundNode{}, err
			}
			continue
		}
		next, err := t.stepInto(stack[len(stack)-1], part, name, visit)
		if err != nil {
			return foundNode{}, err
		}
		if err := t.checkLink(link, next.path, name); err != nil {
			return foundNode{}, err
		}
		if next.entry.Mode != Link {
			stack = append(stack, next)
			continue
		}
		if links++; links > maxLinks {
			return foundNode{}, pathError(name, fmt.Errorf("%w: more than %d", errManyLinks, maxLinks))
		}
		target, err := next.tree.readBlob(next.entry.ID, 4096)
		if err != nil {
			return foundNode{}, pathError(next.path, fmt.Errorf("reading symbolic link: %w", err))
		}
		if err := linkEscapes(stack, string(target)); err != nil {
			return foundNode{}, pathError(name, fmt.Errorf("symbolic link %s -> %s: %w", next.path, target, err))
		}
		parts := splitPath(string(target))
		rest = append(parts, rest...)
		// One more, as this part of the path is done.
		link = linkInside{shown: fmt.Sprintf("symbolic link %s -> %s", next.path, target), from: t.SourceOf(next.path),
			parts: max(link.parts, 1) + len(parts)}
	}
	return stack[len(stack)-1], nil
}

// linkInside is a link whose target, the next parts of a walk, has to stay in the source that the link is in.
type linkInside struct {
	shown, from string
	parts       int
}

// checkLink refuses to go to a path by a link of another source.
func (t *Tree) checkLink(link linkInside, to, name string) error {
	if len(t.sources) == 0 || link.parts <= 0 || t.SourceOf(to) == link.from {
		return nil
	}
	return pathError(name, fmt.Errorf("%s: %w", link.shown, ErrOutside))
}

// stepInto moves from a directory to one of its entries.
func (t *Tree) stepInto(from foundNode, part, name string, visit visitFunc) (foundNode, error) {
	if from.entry.Mode == Submodule {
		return foundNode{}, pathError(name, fmt.Errorf("%s %w", from.path, ErrSubmodule))
	}
	if from.entry.Mode != Dir {
		return foundNode{}, pathError(name, fs.ErrNotExist)
	}
	d, err := t.entriesOf(from)
	if err != nil {
		return foundNode{}, pathError(from.path, err)
	}
	at := path.Join(from.path, part)
	if visit != nil {
		if err := visit(from.entry.ID, len(d.entries), at); err != nil {
			return foundNode{}, err
		}
	}
	i, ok := d.byName[part]
	if !ok {
		return foundNode{}, pathError(name, fs.ErrNotExist)
	}
	next := foundNode{entry: d.entries[i], path: at, tree: from.tree}
	if sub, ok := t.mounts[next.path]; ok && next.entry.Mode == Submodule {
		next.tree, next.entry = sub, Entry{Name: part, Mode: Dir, ID: sub.root}
	}
	return next, nil
}

// linkEscapes reports whether a link's target leaves the tree. The walk itself would detect ".." as well, but could
// not attribute it to a link.
func linkEscapes(stack []foundNode, target string) error {
	if strings.HasPrefix(target, "/") {
		return ErrOutside
	}
	depth := len(stack) - 1
	for _, part := range splitPath(target) {
		switch part {
		case "", ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			return ErrOutside
		}
	}
	return nil
}

// splitPath splits a slash-separated path. Absolute paths start at the tree's root.
func splitPath(name string) []string { return strings.Split(strings.Trim(name, "/"), "/") }

func pathError(name string, err error) error {
	return &fs.PathError{Op: "reading", Path: name, Err: err}
}
