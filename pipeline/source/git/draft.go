// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"
)

// Draft collects new objects on top of a mirror. They are nowhere but in memory until Pack and Keep. It is for one
// goroutine.
type Draft struct {
	m       *Mirror
	objects *memory.Storage
	dirs    map[Hash]map[string]object.TreeEntry
	packed  *packedObjects // what Pack has written; nil before
}

// packedObjects is a pack of so many objects.
type packedObjects struct {
	pack  []byte
	count int
}

// NewDraft starts without any object.
func (m *Mirror) NewDraft() *Draft {
	return &Draft{m: m, objects: memory.NewStorage(), dirs: map[Hash]map[string]object.TreeEntry{}}
}

func (d *Draft) addObject(kind plumbing.ObjectType, content []byte) (Hash, error) {
	encoded := &plumbing.MemoryObject{}
	encoded.SetType(kind)
	if _, err := encoded.Write(content); err != nil {
		return Hash{}, err
	}
	return d.objects.SetEncodedObject(encoded)
}

func (d *Draft) readObject(kind plumbing.ObjectType, id Hash, max int64) ([]byte, error) {
	encoded, err := d.objects.EncodedObject(kind, id)
	if err != nil {
		return d.m.readObject(kind, id, max)
	}
	r, err := encoded.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// BlobHash is the hash that a file with this content has.
func BlobHash(content []byte) Hash { return plumbing.ComputeHash(plumbing.BlobObject, content) }

// Edit returns the root directory that results from writing and removing files: paths to contents, nil to remove. A
// directory without files disappears, and a file in the way of a directory is an error. The zero hash is an empty root.
func (d *Draft) Edit(root Hash, files map[string][]byte) (Hash, error) {
	changes := map[string]Hash{}
	for name, content := range files {
		if content == nil {
			changes[name] = Hash{}
			continue
		}
		hash, err := d.addObject(plumbing.BlobObject, content)
		if err != nil {
			return Hash{}, err
		}
		changes[name] = hash
	}
	return d.editDirectory(root, changes, "")
}

// editDirectory applies changes, whose paths are relative to the directory, and returns the directory's new hash.
func (d *Draft) editDirectory(dir Hash, changes map[string]Hash, at string) (Hash, error) {
	old, err := d.treeEntries(dir)
	if err != nil {
		return Hash{}, err
	}
	entries := maps.Clone(old)
	below := map[string]map[string]Hash{}
	for name, hash := range changes {
		first, rest, deeper := strings.Cut(name, "/")
		if deeper {
			if below[first] == nil {
				below[first] = map[string]Hash{}
			}
			below[first][rest] = hash
			continue
		}
		if old, ok := entries[first]; ok && old.Mode == filemode.Dir && !hash.IsZero() {
			return Hash{}, fmt.Errorf("writing %s%s: it is a directory", at, first)
		}
		if delete(entries, first); !hash.IsZero() {
			entries[first] = object.TreeEntry{Name: first, Mode: filemode.Regular, Hash: hash}
		}
	}
	for first, inside := range below {
		if err := d.editBelow(entries, first, inside, at); err != nil {
			return Hash{}, err
		}
	}
	if len(entries) == 0 && at != "" {
		return Hash{}, nil
	}
	return d.writeTree(entries)
}

func (d *Draft) editBelow(entries map[string]object.TreeEntry, name string, inside map[string]Hash, at string) error {
	old, ok := entries[name]
	if ok && old.Mode != filemode.Dir {
		for _, hash := range inside {
			if !hash.IsZero() {
				return fmt.Errorf("writing below %s%s: it is not a directory", at, name)
			}
		}
		return nil
	}
	hash, err := d.editDirectory(old.Hash, inside, at+name+"/")
	if err != nil {
		return err
	}
	if delete(entries, name); !hash.IsZero() {
		entries[name] = object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: hash}
	}
	return nil
}

// treeEntries returns the entries of a directory. The map is read again and again and must not be changed.
func (d *Draft) treeEntries(dir Hash) (map[string]object.TreeEntry, error) {
	if known, ok := d.dirs[dir]; ok {
		return known, nil
	}
	entries := map[string]object.TreeEntry{}
	if dir.IsZero() {
		return entries, nil
	}
	data, err := d.readObject(plumbing.TreeObject, dir, maxDirectory)
	if err != nil {
		return nil, fmt.Errorf("reading Git tree %s: %w", dir, err)
	}
	err = eachEntry(data, func(mode filemode.FileMode, name string, hash Hash) {
		entries[name] = object.TreeEntry{Name: name, Mode: mode, Hash: hash}
	})
	if err == nil {
		d.dirs[dir] = entries
	}
	return entries, err
}

// writeTree sorts as git does: a directory as if its name ended in a slash.
func (d *Draft) writeTree(entries map[string]object.TreeEntry) (Hash, error) {
	list := make([]object.TreeEntry, 0, len(entries))
	for _, entry := range entries {
		list = append(list, entry)
	}
	key := func(e object.TreeEntry) string {
		if e.Mode == filemode.Dir {
			return e.Name + "/"
		}
		return e.Name
	}
	sort.Slice(list, func(i, j int) bool { return key(list[i]) < key(list[j]) })
	var data bytes.Buffer
	for _, entry := range list {
		fmt.Fprintf(&data, "%o %s\x00", uint32(entry.Mode), entry.Name)
		data.Write(entry.Hash[:])
	}
	return d.addObject(plumbing.TreeObject, data.Bytes())
}

// File returns the hash of a file below a root directory, or the zero hash if it does not exist or is a directory.
func (d *Draft) File(root Hash, name string) (Hash, error) {
	first, rest, deeper := strings.Cut(name, "/")
	entries, err := d.treeEntries(root)
	if err != nil {
		return Hash{}, err
	}
	entry, ok := entries[first]
	switch {
	case !ok || deeper != (entry.Mode == filemode.Dir):
		return Hash{}, nil
	case !deeper:
		return entry.Hash, nil
	}
	return d.File(entry.Hash, rest)
}

// Obstacle returns the path of what prevents writing a file: a directory at its path, or a file in place of one of
// its directories. It returns "" if the file can be written.
func (d *Draft) Obstacle(root Hash, name string) (string, error) {
	entries, err := d.treeEntries(root)
	if err != nil {
		return "", err
	}
	first, rest, deeper := strings.Cut(name, "/")
	entry, ok := entries[first]
	isDir := entry.Mode == filemode.Dir
	switch {
	case !ok || !deeper && !isDir:
		return "", nil
	case deeper != isDir:
		return first, nil
	}
	below, err := d.Obstacle(entry.Hash, rest)
	if below != "" {
		below = first + "/" + below
	}
	return below, err
}

// Content returns the content of a file below a root directory, or false if it does not exist.
func (d *Draft) Content(root Hash, name string) ([]byte, bool, error) {
	hash, err := d.File(root, name)
	if err != nil || hash.IsZero() {
		return nil, false, err
	}
	content, err := d.readObject(plumbing.BlobObject, hash, d.m.limits.ObjectBytes)
	if err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", name, err)
	}
	return content, true, nil
}

// Signer signs the bytes of a commit and returns the armored signature.
type Signer interface {
	Sign(message []byte) (string, error)
}

// CommitData is the content of a new commit.
type CommitData struct {
	Tree    Hash
	Parents []Hash
	// Author is author and committer, Email their address, Date the time of both.
	Author, Email string
	Date          time.Time
	Message       string
	// Signer may be nil.
	Signer Signer
}

// Commit adds a commit.
func (d *Draft) Commit(data CommitData) (Hash, error) {
	who := object.Signature{Name: data.Author, Email: data.Email, When: data.Date.UTC()}
	commit := &object.Commit{Author: who, Committer: who, Message: data.Message, TreeHash: data.Tree, ParentHashes: data.Parents}
	encoded := &plumbing.MemoryObject{}
	if data.Signer != nil {
		if err := commit.EncodeWithoutSignature(encoded); err != nil {
			return Hash{}, err
		}
		r, err := encoded.Reader()
		if err != nil {
			return Hash{}, err
		}
		message, err := io.ReadAll(r)
		if err != nil {
			return Hash{}, err
		}
		if commit.PGPSignature, err = data.Signer.Sign(message); err != nil {
			return Hash{}, fmt.Errorf("signing the commit: %w", err)
		}
		encoded = &plumbing.MemoryObject{}
	}
	if err := commit.Encode(encoded); err != nil {
		return Hash{}, err
	}
	return d.objects.SetEncodedObject(encoded)
}

// Pack writes the new objects as a pack. It is the same for the same objects.
func (d *Draft) Pack(w io.Writer) error {
	var pack bytes.Buffer
	if err := writePack(&pack, d.objects); err != nil {
		return err
	}
	d.packed = &packedObjects{pack.Bytes(), len(d.objects.Objects)}
	_, err := w.Write(d.packed.pack)
	return err
}

// Keep stores the new objects in the mirror, after they were pushed, so that the next fetch need not bring them.
func (d *Draft) Keep(ctx context.Context, head Hash) error {
	unlock, err := d.m.lockMirror(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := storeNewObjects(d.m.dir, d.objects, d.packed); err != nil {
		return err
	}
	if err := d.m.rememberCommit(head); err != nil {
		return err
	}
	// A mirror that is only published to fetches nothing.
	_ = d.m.compactIfNeeded()
	return nil
}

// IsDir reports whether the root directory has a directory of this name.
func (d *Draft) IsDir(root Hash, name string) (bool, error) {
	entries, err := d.treeEntries(root)
	return entries[name].Mode == filemode.Dir, err
}
