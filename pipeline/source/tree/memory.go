// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
)

// Builder makes a tree that is held in memory, for sources that are not a Git repository.
type Builder struct {
	limits Limits
	root   *memoryDir
	blobs  map[string]fileContent
	spill  spillFile
	files  int
	bytes  int64
}

// maxPath is the length of a path in bytes up to which systems take it.
const maxPath = 4096

type memoryDir struct {
	entries map[string]Entry
	dirs    map[string]*memoryDir
}

type memoryObjects struct {
	trees map[string][]Entry
	blobs map[string]fileContent
}

// NewBuilder starts an empty tree. Entries and TotalBytes of the limits bound it.
func NewBuilder(limits Limits) *Builder {
	return &Builder{limits: limits, root: newMemoryDir(), blobs: map[string]fileContent{}}
}

// Spill stores contents beyond 8 MB in an unnamed file in a directory, which is created if missing.
func (b *Builder) Spill(dir string) { b.spill.dir = dir }

// Discard releases the file at once. The tree can no longer be read.
func (b *Builder) Discard() { b.spill.closeFile() }

func newMemoryDir() *memoryDir {
	return &memoryDir{entries: map[string]Entry{}, dirs: map[string]*memoryDir{}}
}

// Add puts a file or a link (whose content is its target) at a path inside the tree. A later entry replaces an earlier
// one, as in an archive.
func (b *Builder) Add(name string, mode Mode, data []byte) error {
	clean := path.Clean(strings.TrimPrefix(name, "./"))
	if clean == "." || clean == ".." || strings.HasPrefix(clean, "../") || strings.HasPrefix(clean, "/") {
		return pathError(name, ErrOutside)
	}
	if len(clean) > maxPath {
		return &LimitError{What: fmt.Sprintf("length of the path that begins with %.40q", clean), Limit: maxPath}
	}
	b.files++
	b.bytes += int64(len(data))
	if b.limits.Entries > 0 && b.files > b.limits.Entries {
		return &LimitError{What: "number of files and directories", Limit: int64(b.limits.Entries)}
	}
	if b.limits.TotalBytes > 0 && b.bytes > b.limits.TotalBytes {
		return &LimitError{What: "sum of the sizes of all files in bytes", Limit: b.limits.TotalBytes}
	}
	at := b.root
	dir, base := path.Split(clean)
	for _, part := range strings.Split(strings.Trim(dir, "/"), "/") {
		if part == "" {
			continue
		}
		if _, taken := at.entries[part]; taken {
			return pathError(name, fmt.Errorf("%s is a file and a directory", part))
		}
		next := at.dirs[part]
		if next == nil {
			// Directories cost memory as files do, and one long name can make many.
			if b.files++; b.limits.Entries > 0 && b.files > b.limits.Entries {
				return &LimitError{What: "number of files and directories", Limit: int64(b.limits.Entries)}
			}
			next = newMemoryDir()
			part = strings.Clone(part) // and not the whole path with it
			at.dirs[part] = next
		}
		at = next
	}
	if _, taken := at.dirs[base]; taken {
		return pathError(name, fmt.Errorf("%s is a file and a directory", base))
	}
	sum := sha256.Sum256(data)
	id := hex.EncodeToString(sum[:])
	if _, ok := b.blobs[id]; !ok {
		kept, err := b.spill.keepContent(data)
		if err != nil {
			return err
		}
		b.blobs[id] = kept
	}
	base = strings.Clone(base)
	at.entries[base] = Entry{Name: base, Mode: mode, ID: id}
	return nil
}

// AddLarge puts a file whose content was not taken, as it is too large to be read.
func (b *Builder) AddLarge(name string, size int64) error {
	text := []byte(fmt.Sprintf("large file of %d bytes: %s", size, name))
	if err := b.Add(name, File, text); err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	b.blobs[hex.EncodeToString(sum[:])] = fileContent{none: true}
	return nil
}

// Build returns the tree. Its ID depends on names, modes and content only.
func (b *Builder) Build() *Tree {
	store := &memoryObjects{trees: map[string][]Entry{}, blobs: b.blobs}
	return New(store, store.addDirectory(b.root))
}

func (m *memoryObjects) addDirectory(d *memoryDir) string {
	entries := make([]Entry, 0, len(d.entries)+len(d.dirs))
	for _, entry := range d.entries {
		entries = append(entries, entry)
	}
	for name, sub := range d.dirs {
		entries = append(entries, Entry{Name: name, Mode: Dir, ID: m.addDirectory(sub)})
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	h := sha256.New()
	for _, entry := range entries {
		fmt.Fprintf(h, "%d %s\x00%s\n", entry.Mode, entry.Name, entry.ID)
	}
	id := hex.EncodeToString(h.Sum(nil))
	m.trees[id] = entries
	return id
}

// Tree implements Objects.
func (m *memoryObjects) Tree(id string) ([]Entry, error) {
	entries, ok := m.trees[id]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return entries, nil
}

// Blob implements Objects.
func (m *memoryObjects) Blob(id string, max int64) ([]byte, error) {
	kept, ok := m.blobs[id]
	if !ok {
		return nil, fs.ErrNotExist
	}
	if kept.size > max || kept.none {
		return nil, &LimitError{What: "size of the file", Limit: max}
	}
	return kept.readContent()
}
