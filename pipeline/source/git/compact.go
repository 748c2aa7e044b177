// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// A mirror lives for years. Small fetches leave single objects behind and larger ones packs; every so often they are put
// into one pack, and what no recent commit needs is dropped.
const (
	// compactPacks and compactSample say when: the number of packs, and of single objects in one of 256 directories.
	compactPacks  = 16
	compactSample = 25
	// compactGrace is how long an object stays whatever happens: a render that is under way may still read it.
	compactGrace = time.Hour
	// compactPause is how long nobody looks again after it was looked whether there is enough that is old: an upgrade of a
	// thousand applications leaves thousands of files, and each fetch would ask for the age of all of them.
	compactPause = 10 * time.Minute
	// compactBytes bounds what is put together, which is done in memory.
	compactBytes = 128 << 20
)

// compactIfNeeded keeps the mirror small. It is for the holder of the lock. Errors are not the fetch's, and the next one
// tries again.
func (m *Mirror) compactIfNeeded() error {
	packs, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "pack-*.idx"))
	sample, _ := filepath.Glob(filepath.Join(m.dir, "objects", "17", "*"))
	if len(packs) < compactPacks && len(sample) < compactSample || time.Since(m.looked) < compactPause {
		return nil
	}
	m.looked = time.Now()
	before := time.Now().Add(-compactGrace)
	old := slices.DeleteFunc(packs, func(name string) bool { return newer(name, before) })
	if len(old) < compactPacks && len(m.single(before)) < 128*compactSample {
		return nil // most of it is too new
	}
	return m.compact(before)
}

// compact puts everything that was stored before a time and is needed into one pack, except for what is in large packs,
// which stay as they are.
func (m *Mirror) compact(before time.Time) error {
	large, small, err := m.packs(before)
	if err != nil {
		return fmt.Errorf("compacting the mirror: %w", err)
	}
	if single := m.single(before); len(small) < 2 && len(single) < 2 {
		return nil
	}
	storage := filesystem.NewStorage(newIndexed(m.dir), cache.NewObjectLRU(0))
	needed := &reachable{storage: storage, seen: map[Hash]bool{}}
	for _, commit := range m.shallow() {
		if err := needed.commit(commit); err != nil {
			return fmt.Errorf("compacting the mirror: %w", err)
		}
	}
	var rest []Hash
	var size int64
	for hash := range needed.seen {
		if within, err := containedIn(large, hash); err != nil || within {
			continue
		}
		n, err := storage.EncodedObjectSize(hash)
		if err != nil {
			continue // left out by the server
		}
		rest = append(rest, hash)
		if size += n; size > compactBytes {
			return nil
		}
	}
	made, err := m.repack(storage, rest)
	if err != nil {
		return fmt.Errorf("compacting the mirror: %w", err)
	}
	// One pack with just these objects may have been there: it has the same name.
	return m.drop(slices.DeleteFunc(small, func(p pack) bool { return p.base == made }), before)
}

type pack struct {
	base  string // without an ending
	size  int64
	index *idxfile.MemoryIndex
}

// packs divides the packs: those that are at least half as large as the largest, or too new to be touched, stay.
func (m *Mirror) packs(before time.Time) (large, small []pack, err error) {
	names, err := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "pack-*.idx"))
	if err != nil {
		return nil, nil, err
	}
	var all []pack
	var largest int64
	for _, name := range names {
		base := name[:len(name)-len(".idx")]
		info, err := os.Stat(base + ".pack")
		if err != nil {
			return nil, nil, err
		}
		if info.ModTime().After(before) {
			continue
		}
		all = append(all, pack{base: base, size: info.Size()})
		largest = max(largest, info.Size())
	}
	for _, p := range all {
		if p.size < largest/2 || p.size < 1<<20 {
			small = append(small, p)
			continue
		}
		if p.index, err = readIndex(p.base + ".idx"); err != nil {
			return nil, nil, err
		}
		large = append(large, p)
	}
	return large, small, nil
}

func readIndex(name string) (*idxfile.MemoryIndex, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	index := idxfile.NewMemoryIndex()
	return index, idxfile.NewDecoder(file).Decode(index)
}

func containedIn(packs []pack, hash Hash) (bool, error) {
	for _, p := range packs {
		found, err := p.index.Contains(hash)
		if err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// reachable walks from commits to everything that they hold.
type reachable struct {
	storage *filesystem.Storage
	seen    map[Hash]bool
}

func (r *reachable) commit(hash Hash) error {
	decoded, err := decodeCommit(r.storage, hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	r.seen[hash] = true
	return r.tree(decoded.TreeHash)
}

func decodeCommit(storage *filesystem.Storage, hash Hash) (*object.Commit, error) {
	encoded, err := storage.EncodedObject(plumbing.CommitObject, hash)
	if err != nil {
		return nil, err
	}
	commit := &object.Commit{}
	return commit, commit.Decode(encoded)
}

func contentOf(encoded plumbing.EncodedObject) ([]byte, error) {
	r, err := encoded.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func (r *reachable) tree(hash Hash) error {
	if r.seen[hash] {
		return nil
	}
	r.seen[hash] = true
	encoded, err := r.storage.EncodedObject(plumbing.TreeObject, hash)
	if err != nil {
		return err
	}
	data, err := contentOf(encoded)
	if err != nil {
		return err
	}
	var dirs []Hash
	err = eachEntry(data, func(mode filemode.FileMode, _ string, hash Hash) {
		switch mode {
		case filemode.Dir:
			dirs = append(dirs, hash)
		case filemode.Submodule:
		default:
			r.seen[hash] = true
		}
	})
	for _, dir := range dirs {
		err = errors.Join(err, r.tree(dir))
	}
	return err
}

// repack writes objects as one pack and gives its name without an ending, "" where there are none.
func (m *Mirror) repack(storage *filesystem.Storage, hashes []Hash) (string, error) {
	if len(hashes) == 0 {
		return "", nil
	}
	file, err := os.CreateTemp(filepath.Join(m.dir, "objects", "pack"), "tmp_pack_")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	plumbing.HashesSort(hashes)
	if _, err := packfile.NewEncoder(file, storage, false).Encode(hashes, 0); err != nil {
		return "", err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	return m.index(file)
}

// single returns the files of single objects that were stored before a time.
func (m *Mirror) single(before time.Time) []string {
	all, _ := filepath.Glob(filepath.Join(m.dir, "objects", "[0-9a-f][0-9a-f]", "*"))
	return slices.DeleteFunc(all, func(name string) bool { return newer(name, before) })
}

// newer reports whether a file is newer than a time, or gone.
func newer(name string, than time.Time) bool {
	info, err := os.Stat(name)
	return err != nil || info.ModTime().After(than)
}

// drop removes what was put together or is not needed any more.
func (m *Mirror) drop(packs []pack, before time.Time) error {
	var errs []error
	for _, p := range packs {
		// The index first: without it the pack is not looked at.
		errs = append(errs, os.Remove(p.base+".idx"), os.Remove(p.base+".pack"))
	}
	for _, name := range m.single(before) {
		errs = append(errs, os.Remove(name))
	}
	m.mu.Lock()
	m.open()
	m.mu.Unlock()
	return errors.Join(errs...)
}
