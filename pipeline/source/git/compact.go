// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// A mirror lives for years. Small fetches leave single objects behind and larger ones packs; every so often they are put
// into one pack, and what no recent commit needs is dropped.
const (
	// compactPacks and compactSample are the thresholds: the number of packs, and of loose objects in 16 of 256
	// directories.
	compactPacks  = 16
	compactSample = 32
	// compactGrace is how long an object stays whatever happens: a render that is under way may still read it.
	compactGrace = time.Hour
	// compactPause is the minimum interval between checks whether enough packs are old.
	compactPause = 10 * time.Minute
	// compactBytes bounds the content of a pack that is made here, which is done in memory.
	compactBytes = 64 << 20
	// looseBytes is the size of a file from which it is worth a block of its own.
	looseBytes = 64 << 10
)

// compactIfNeeded keeps the mirror small. It is for the holder of the lock. Errors are not the caller's, and the next call
// tries again.
func (m *Mirror) compactIfNeeded() error {
	if sample, _ := filepath.Glob(filepath.Join(m.dir, "objects", "1[0-9a-f]", "*")); len(sample) >= compactSample {
		if err := m.packLoose(); err != nil {
			return fmt.Errorf("compacting the mirror: %w", err)
		}
	}
	packs, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "pack-*.idx"))
	if len(packs) < compactPacks || time.Since(m.lastCompactionCheck) < compactPause {
		return nil
	}
	m.lastCompactionCheck = time.Now()
	before, err := compactBefore(m.dir)
	if err != nil {
		return err
	}
	if old := slices.DeleteFunc(packs, before.isNewer); len(old) < compactPacks {
		return nil // most of it is too new
	}
	return m.compactPacks(before)
}

// packLoose puts the small loose objects into one pack, whatever their age: each takes a block of the file system, twenty
// times its size. Nothing is dropped, and readers find the objects in the pack.
func (m *Mirror) packLoose() error {
	storage := filesystem.NewStorage(newIndexed(m.dir), cache.NewObjectLRU(0))
	var hashes []Hash
	var files []string
	var size int64
	for _, name := range looseObjects(m.dir, anyAge) {
		hash := plumbing.NewHash(filepath.Base(filepath.Dir(name)) + filepath.Base(name))
		info, err := os.Stat(name)
		if err != nil || info.Size() > looseBytes {
			continue
		}
		n, err := objectSize(m.dir, storage, hash)
		if err != nil || size+n > compactBytes {
			continue // a damaged one is found by who reads it
		}
		size += n
		hashes, files = append(hashes, hash), append(files, name)
	}
	if len(hashes) < 2 {
		return nil
	}
	if _, err := packObjects(m.dir, storage, hashes); err != nil {
		return err
	}
	var errs []error
	for _, name := range files {
		errs = append(errs, os.Remove(name))
	}
	m.lockAndReopen()
	return errors.Join(errs...)
}

// objectSize returns the size of an object. go-git's EncodedObjectSize leaves the file of a loose object open until the
// next garbage collection (storage/filesystem/object.go in v5.19.3): hundreds of descriptors in one compaction.
func objectSize(dir string, storage *filesystem.Storage, hash Hash) (int64, error) {
	name := hash.String()
	file, err := os.Open(filepath.Join(dir, "objects", name[:2], name[2:]))
	if errors.Is(err, fs.ErrNotExist) {
		return storage.EncodedObjectSize(hash)
	}
	if err != nil {
		return 0, err
	}
	defer file.Close()
	reader, err := objfile.NewReader(file)
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	_, size, err := reader.Header()
	return size, err
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

// compactPacks puts everything that was stored before a time and is needed into packs, except for what is in large packs
// of which at least half is needed: these stay as they are.
func (m *Mirror) compactPacks(before fileAge) error {
	storage := filesystem.NewStorage(newIndexed(m.dir), cache.NewObjectLRU(0))
	needed := &reachableObjects{storage: storage, seen: map[Hash]bool{}}
	for _, commit := range shallowCommits(m.dir) {
		if err := needed.walkCommit(commit); err != nil {
			return fmt.Errorf("compacting the mirror: %w", err)
		}
	}
	stay, rest, err := splitPacks(m.dir, before, needed.order)
	if err != nil {
		return fmt.Errorf("compacting the mirror: %w", err)
	}
	if single := looseObjects(m.dir, before); len(rest) < 2 && len(single) < 2 {
		return nil
	}
	var made []string
	var next []Hash
	var size int64
	write := func() error {
		base, err := packObjects(m.dir, storage, next)
		if err != nil {
			return fmt.Errorf("compacting the mirror: %w", err)
		}
		made, next, size = append(made, base), nil, 0
		return nil
	}
	for _, hash := range needed.order {
		if within, err := containedIn(stay, hash); err != nil || within {
			continue
		}
		n, err := objectSize(m.dir, storage, hash)
		if err != nil {
			continue // left out by the server
		}
		if size+n > compactBytes {
			if err := write(); err != nil {
				return err
			}
		}
		next, size = append(next, hash), size+n
	}
	if err := write(); err != nil {
		return err
	}
	// A pack with exactly these objects may have existed already: it has the same name.
	err = removePacks(m.dir, slices.DeleteFunc(rest, func(p packFile) bool { return slices.Contains(made, p.base) }), before)
	m.lockAndReopen()
	return err
}

type packFile struct {
	base  string // without an ending
	size  int64
	index *idxfile.MemoryIndex
}

// largePack is the size of a pack from which it is not written again while it is needed.
const largePack = 1 << 20

// splitPacks divides the packs that are old enough to be touched: large ones stay while at least half of their objects are
// needed, so that all of them together have at most twice what is needed.
func splitPacks(dir string, before fileAge, needed []Hash) (stay, rest []packFile, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "pack-*.idx"))
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		p := packFile{base: name[:len(name)-len(".idx")]}
		info, err := os.Stat(p.base + ".pack")
		if err != nil {
			return nil, nil, err
		}
		if before.isNewerTime(info.ModTime()) {
			continue
		}
		if p.size = info.Size(); p.size < largePack {
			rest = append(rest, p)
			continue
		}
		useful, err := p.isHalfNeeded(needed)
		if err != nil {
			return nil, nil, err
		}
		if useful {
			stay = append(stay, p)
		} else {
			rest = append(rest, p)
		}
	}
	return stay, rest, nil
}

// isHalfNeeded reads the index of a pack, and reports whether at least half of its objects are among some.
func (p *packFile) isHalfNeeded(needed []Hash) (bool, error) {
	var err error
	if p.index, err = readIndex(p.base + ".idx"); err != nil {
		return false, err
	}
	all, err := p.index.Count()
	if err != nil {
		return false, err
	}
	found := int64(0)
	for _, hash := range needed {
		if within, err := p.index.Contains(hash); err == nil && within {
			found++
		}
	}
	return 2*found >= all, nil
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
