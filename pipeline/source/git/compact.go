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
	// compactPacks and compactSample are the thresholds: the number of packs, and of loose objects in one of 256
	// directories.
	compactPacks  = 16
	compactSample = 25
	// compactGrace is how long an object stays whatever happens: a render that is under way may still read it.
	compactGrace = time.Hour
	// compactPause is the minimum interval between checks whether enough files are old: an upgrade of a thousand
	// applications leaves thousands of files, and each fetch would stat all of them.
	compactPause = 10 * time.Minute
	// compactBytes bounds what is put together, which is done in memory.
	compactBytes = 128 << 20
)

// compactIfNeeded keeps the mirror small. It is for the holder of the lock. Errors are not the fetch's, and the next one
// tries again.
func (m *Mirror) compactIfNeeded() error {
	packs, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "pack-*.idx"))
	sample, _ := filepath.Glob(filepath.Join(m.dir, "objects", "17", "*"))
	if len(packs) < compactPacks && len(sample) < compactSample || time.Since(m.lastCompactionCheck) < compactPause {
		return nil
	}
	m.lastCompactionCheck = time.Now()
	before, err := compactBefore(m.dir)
	if err != nil {
		return err
	}
	old := slices.DeleteFunc(packs, func(name string) bool { return before.isNewer(name) })
	if len(old) < compactPacks && len(looseObjects(m.dir, before)) < 128*compactSample {
		return nil // most of it is too new
	}
	return m.compactPacks(before)
}

// fileAge separates files that were stored before a time from newer ones.
type fileAge struct{ time.Time }

// anyAge matches all files.
var anyAge = fileAge{}

// compactBefore returns the age from which files are compacted, by the clock of the file system that sets their
// times: it may be ahead of this machine's.
func compactBefore(dir string) (fileAge, error) {
	file, err := os.CreateTemp(filepath.Join(dir, "objects"), "tmp_clock_")
	if err != nil {
		return fileAge{}, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fileAge{}, err
	}
	return fileAge{info.ModTime().Add(-compactGrace)}, nil
}

// isNewer reports whether a file is newer, or no longer exists. A file from the future was stored before the clock
// was set back.
func (a fileAge) isNewer(name string) bool {
	info, err := os.Stat(name)
	return err != nil || a.isNewerTime(info.ModTime())
}

func (a fileAge) isNewerTime(t time.Time) bool {
	return a != anyAge && t.After(a.Time) && t.Before(a.Add(2*compactGrace))
}

// compactPacks puts everything that was stored before a time and is needed into one pack, except for what is in large packs,
// which stay as they are.
func (m *Mirror) compactPacks(before fileAge) error {
	large, small, err := splitPacks(m.dir, before)
	if err != nil {
		return fmt.Errorf("compacting the mirror: %w", err)
	}
	if single := looseObjects(m.dir, before); len(small) < 2 && len(single) < 2 {
		return nil
	}
	storage := filesystem.NewStorage(newIndexed(m.dir), cache.NewObjectLRU(0))
	needed := &reachableObjects{storage: storage, seen: map[Hash]bool{}}
	for _, commit := range shallowCommits(m.dir) {
		if err := needed.walkCommit(commit); err != nil {
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
	made, err := packObjects(m.dir, storage, rest)
	if err != nil {
		return fmt.Errorf("compacting the mirror: %w", err)
	}
	// A pack with exactly these objects may have existed already: it has the same name.
	err = removePacks(m.dir, slices.DeleteFunc(small, func(p packFile) bool { return p.base == made }), before)
	m.lockAndReopen()
	return err
}

type packFile struct {
	base  string // without an ending
	size  int64
	index *idxfile.MemoryIndex
}

// splitPacks divides the packs: those that are at least half as large as the largest, or too new to be touched, stay.
func splitPacks(dir string, before fileAge) (large, small []packFile, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "pack-*.idx"))
	if err != nil {
		return nil, nil, err
	}
	var all []packFile
	var largest int64
	for _, name := range names {
		base := name[:len(name)-len(".idx")]
		info, err := os.Stat(base + ".pack")
		if err != nil {
			return nil, nil, err
		}
		if before.isNewerTime(info.ModTime()) {
			continue
		}
		all = append(all, packFile{base: base, size: info.Size()})
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

func containedIn(packs []packFile, hash Hash) (bool, error) {
	for _, p := range packs {
		found, err := p.index.Contains(hash)
		if err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// reachableObjects walks from commits to everything that they hold.
type reachableObjects struct {
	storage *filesystem.Storage
	seen    map[Hash]bool
	order   []Hash // as they were seen
}

// markObjectSeen notes an object, and reports whether it is new.
func (r *reachableObjects) markObjectSeen(hash Hash) bool {
	if r.seen[hash] {
		return false
	}
	r.seen[hash] = true
	r.order = append(r.order, hash)
	return true
}

func (r *reachableObjects) walkCommit(hash Hash) error {
	decoded, err := decodeCommit(r.storage, hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	r.markObjectSeen(hash)
	return r.walkTree(decoded.TreeHash)
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

func (r *reachableObjects) walkTree(hash Hash) error {
	if !r.markObjectSeen(hash) {
		return nil
	}
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
			r.markObjectSeen(hash)
		}
	})
	for _, dir := range dirs {
		err = errors.Join(err, r.walkTree(dir))
	}
	return err
}

// packObjects writes objects as one pack and returns its name without an extension, or "" for no objects.
func packObjects(dir string, storage *filesystem.Storage, hashes []Hash) (string, error) {
	if len(hashes) == 0 {
		return "", nil
	}
	file, err := os.CreateTemp(filepath.Join(dir, "objects", "pack"), "tmp_pack_")
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
	return indexPack(dir, file)
}

// looseObjects returns the files of single objects that were stored before a time.
func looseObjects(dir string, before fileAge) []string {
	all, _ := filepath.Glob(filepath.Join(dir, "objects", "[0-9a-f][0-9a-f]", "*"))
	return slices.DeleteFunc(all, func(name string) bool { return before.isNewer(name) })
}

// removePacks removes what was put together or is not needed any more.
func removePacks(dir string, packs []packFile, before fileAge) error {
	var errs []error
	for _, p := range packs {
		// The index first: without it the pack is not looked at.
		errs = append(errs, os.Remove(p.base+".idx"), os.Remove(p.base+".pack"))
	}
	for _, name := range looseObjects(dir, before) {
		errs = append(errs, os.Remove(name))
	}
	return errors.Join(errs...)
}
