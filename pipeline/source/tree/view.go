// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"sync"
)

// Info is what is at a path.
type Info struct {
	// Path is canonical: relative to the root, cleaned, without symbolic links; "." for the root.
	Path string `json:"path"`
	// Dir reports whether it is a directory.
	Dir bool `json:"dir,omitempty"`
	// Exec reports whether it is an executable file.
	Exec bool `json:"exec,omitempty"`
}

// Reader reads a tree. Paths are relative to the root and separated by slashes; a leading slash is ignored. A path
// that does not exist results in an fs.ErrNotExist error.
type Reader interface {
	// Lookup follows links and describes the entry at the path.
	Lookup(name string) (Info, error)
	// Read returns the content of a file. The caller must not change it.
	Read(name string) ([]byte, error)
	// List returns the entries of a directory by name, links followed, those that lead nowhere left out. One that leads out of the
	// tree is a file that cannot be read. Info.Path is where the entry is in the directory.
	List(name string) ([]Info, error)
}

// Limits bound what one view may read. Zero means no limit.
type Limits struct {
	// FileBytes is the size of the largest file that is read.
	FileBytes int64
	// TotalBytes is the sum of the sizes of all files that are read.
	TotalBytes int64
	// Files is the number of files that are read.
	Files int
	// Entries is the number of entries of all directories that are looked into.
	Entries int
}

// View reads a tree for one render: it bounds and records. It is safe for use by several goroutines.
type View struct {
	tree  *Tree
	spent *readBudget

	mu     sync.Mutex
	record map[accessKey]string
}

// readBudget is what views together may read.
type readBudget struct {
	limits Limits

	mu      sync.Mutex
	seen    map[treeFile]bool // and whether its bytes are counted
	dirs    map[string]bool   // directories by ID
	bytes   int64
	entries int
}

type treeFile struct {
	tree *Tree
	path string
}

type accessKey struct {
	Op   Op
	Path string
}

// NewView starts a view with an empty record.
func NewView(t *Tree, limits Limits) *View {
	return &View{tree: t, spent: &readBudget{limits: limits, seen: map[treeFile]bool{}, dirs: map[string]bool{}},
		record: map[accessKey]string{}}
}

// Beside starts a view of another tree, with a record of its own, that counts against the same limits.
func (v *View) Beside(t *Tree) *View {
	return &View{tree: t, spent: v.spent, record: map[accessKey]string{}}
}

// Lookup implements Reader.
func (v *View) Lookup(name string) (Info, error) {
	found, err := v.findPath(name)
	v.recordAccess(OpLookup, name, lookupOutcome(found, err))
	if err != nil {
		return Info{}, err
	}
	return infoOf(found), nil
}

func infoOf(n foundNode) Info {
	return Info{Path: n.path, Dir: n.entry.Mode == Dir || n.entry.Mode == Submodule, Exec: n.entry.Mode == Executable}
}

// Read implements Reader.
func (v *View) Read(name string) ([]byte, error) { return v.readBlobAt(name, (*Tree).readBlob) }

// ReadOnce is Read for a file that is not expected to be read again: the tree does not keep its content.
func (v *View) ReadOnce(name string) ([]byte, error) { return v.readBlobAt(name, (*Tree).readBlobOnce) }

func (v *View) readBlobAt(name string, blob func(t *Tree, id string, max int64) ([]byte, error)) ([]byte, error) {
	found, err := v.findPath(name)
	v.recordAccess(OpRead, name, readOutcome(found, err))
	if err != nil {
		return nil, err
	}
	if found.entry.Mode == Submodule {
		return nil, pathError(name, fmt.Errorf("%s %w", found.path, ErrSubmodule))
	}
	if found.entry.Mode == Dir {
		return nil, pathError(name, errors.New("is a directory"))
	}
	if err := v.spent.countFile(treeFile{v.tree, found.path}); err != nil {
		return nil, err
	}
	max := v.spent.limits.FileBytes
	if max <= 0 {
		max = 1 << 62
	}
	content, err := blob(found.tree, found.entry.ID, max)
	var limit *LimitError
	if errors.As(err, &limit) {
		return nil, pathError(name, &LimitError{What: "size of " + found.path + " in bytes", Limit: max})
	}
	if err != nil {
		return nil, pathError(name, err)
	}
	return content, v.spent.countBytes(treeFile{v.tree, found.path}, int64(len(content)))
}

// List implements Reader.
func (v *View) List(name string) ([]Info, error) {
	found, err := v.findPath(name)
	if err == nil && found.entry.Mode == Submodule {
		err = pathError(name, fmt.Errorf("%s %w", found.path, ErrSubmodule))
	}
	if err == nil && found.entry.Mode != Dir {
		err = pathError(name, errors.New("is not a directory"))
	}
	if err != nil {
		v.recordAccess(OpList, name, lookupOutcome(found, err))
		return nil, err
	}
	list, err := v.tree.listDirectory(found, v.spent.visitDirectory)
	v.recordAccess(OpList, name, listOutcome(list, err))
	return list, err
}

// listDirectory returns the entries of a directory, links followed.
func (t *Tree) listDirectory(found foundNode, visit visitFunc) ([]Info, error) {
	d, err := t.entriesOf(found)
	if err != nil {
		return nil, pathError(found.path, err)
	}
	if visit != nil {
		if err := visit(found.entry.ID, len(d.entries), found.path+"/"); err != nil {
			return nil, err
		}
	}
	list := make([]Info, 0, len(d.entries))
	for _, entry := range d.entries {
		at := path.Join(found.path, entry.Name)
		info := Info{Path: at, Dir: entry.Mode == Dir || entry.Mode == Submodule, Exec: entry.Mode == Executable}
		if entry.Mode == Link {
			target, err := t.findPath(at, visit)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				continue
			case errors.Is(err, ErrOutside), errors.Is(err, errManyLinks), errors.Is(err, ErrSubmodule):
				// Reading it is an error, and the rest of the directory is not.
			case err != nil:
				return nil, err
			default:
				info = infoOf(target)
				info.Path = at
			}
		}
		list = append(list, info)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Path < list[j].Path })
	return list, nil
}

func (v *View) findPath(name string) (foundNode, error) {
	return v.tree.findPath(name, v.spent.visitDirectory)
}

func (b *readBudget) visitDirectory(id string, entries int, _ string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.dirs[id] {
		b.dirs[id] = true
		b.entries += entries
	}
	if b.limits.Entries > 0 && b.entries > b.limits.Entries {
		return &LimitError{What: "number of files in the directories that the render looks into",
			Limit: int64(b.limits.Entries)}
	}
	return nil
}

func (b *readBudget) countFile(f treeFile) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, found := b.seen[f]; !found {
		b.seen[f] = false
	}
	if b.limits.Files > 0 && len(b.seen) > b.limits.Files {
		return &LimitError{What: "number of files that the render reads", Limit: int64(b.limits.Files)}
	}
	return nil
}

// countBytes counts a file once, however often it is read: a render that is done again reads all of it once more.
func (b *readBudget) countBytes(f treeFile, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.seen[f] {
		b.seen[f] = true
		b.bytes += n
	}
	if b.limits.TotalBytes > 0 && b.bytes > b.limits.TotalBytes {
		return &LimitError{What: "sum of the bytes that the render reads", Limit: b.limits.TotalBytes}
	}
	return nil
}
