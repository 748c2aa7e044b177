// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// storedMirror is a mirror as it lies in a store, whether or not this process has opened it.
type storedMirror struct {
	dir  string
	size int64
	used time.Time // when a commit was fetched last
}

// mirrorsByAge lists the mirrors, those with the oldest last fetch first, with their total size.
func (s *Store) mirrorsByAge() (all []storedMirror, size int64) {
	dirs, _ := filepath.Glob(filepath.Join(s.dir, "*.git"))
	for _, dir := range dirs {
		one := storedMirror{dir: dir, size: sizeOf(filepath.Join(dir, "objects"))}
		if info, err := os.Stat(filepath.Join(dir, "shallow")); err == nil {
			one.used = info.ModTime()
		}
		all, size = append(all, one), size+one.size
	}
	slices.SortFunc(all, func(a, b storedMirror) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.dir, b.dir)) })
	return all, size
}

// sizeOf is how many bytes the files below a directory take. Those that come and go meanwhile count or not.
func sizeOf(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}

// Size is how many bytes all mirrors take.
func (s *Store) Size() int64 {
	_, size := s.mirrorsByAge()
	return size
}

// Trim reduces the mirrors to at most limit bytes: commits that were fetched first are removed first, starting with
// the mirrors whose last fetch is oldest. A reader of a removed commit finds files missing, so it must be called
// when no reader is active. A commit that is fetched again is kept again.
func (s *Store) Trim(ctx context.Context, limit int64) error {
	all, size := s.mirrorsByAge()
	if size <= limit {
		return nil
	}
	var errs []error
	target := limit / 4 * 3 // or it would be done again with the next fetch
	for _, one := range all {
		if size <= target {
			break
		}
		if err := s.mirrorIn(one.dir).trimToNewestCommits(ctx, max(0, one.size-(size-target))); err != nil {
			errs = append(errs, fmt.Errorf("making room in %s: %w", one.dir, err))
			continue
		}
		size += sizeOf(filepath.Join(one.dir, "objects")) - one.size
	}
	return errors.Join(errs...)
}

// mirrorIn returns the mirror in a directory.
func (s *Store) mirrorIn(dir string) *Mirror {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.mirrors {
		if m.dir == dir {
			return m
		}
	}
	m := s.newMirror(dir)
	m.reopenStorage()
	return m
}

// trimToNewestCommits keeps the newest commits, as many as have room, and of the files only those that they need.
func (m *Mirror) trimToNewestCommits(ctx context.Context, limit int64) error {
	unlock, err := m.lockMirror(ctx)
	if err != nil {
		return fmt.Errorf("waiting for the mirror: %w", err)
	}
	defer unlock()
	if err := m.sweepLeftovers(); err != nil { // also for a mirror that is never opened again
		return err
	}
	files := listStoredFiles(m.dir)
	storage := filesystem.NewStorage(newIndexed(m.dir), cache.NewObjectLRU(0))
	needed := &reachableObjects{storage: storage, seen: map[Hash]bool{}}
	commits, keep := shallowCommits(m.dir), 0
	for i := len(commits) - 1; i >= 0; i-- {
		from := len(needed.order)
		if needed.walkCommit(commits[i]) != nil || files.sizeWithObjects(needed.order[from:]) > limit {
			break // one that is damaged is fetched again
		}
		files.keepLastMeasured()
		keep++
	}
	if err := writeShallow(m.dir, commits[len(commits)-keep:]); err != nil {
		return err
	}
	err = files.removeUnkeptFiles()
	m.trees.dropTrees()
	m.lockAndReopen()
	return err
}

// storedFiles are the files with a mirror's objects, and which of them are to stay.
type storedFiles struct {
	packs  []*packFile
	loose  map[Hash]int64 // sizes
	dir    string
	size   int64 // of those that stay
	stay   map[*packFile]bool
	single map[Hash]bool

	// Those that would stay, too.
	moreSize   int64
	morePacks  map[*packFile]bool
	moreSingle []Hash
}

func listStoredFiles(dir string) *storedFiles {
	f := &storedFiles{dir: filepath.Join(dir, "objects"), loose: map[Hash]int64{}, stay: map[*packFile]bool{}, single: map[Hash]bool{}}
	names, _ := filepath.Glob(filepath.Join(f.dir, "pack", "pack-*.pack"))
	for _, name := range names {
		p := &packFile{base: name[:len(name)-len(".pack")]}
		for _, ending := range []string{".pack", ".idx"} {
			if info, err := os.Stat(p.base + ending); err == nil {
				p.size += info.Size()
			}
		}
		p.index, _ = readIndex(p.base + ".idx") // a pack without an index is never read
		f.packs = append(f.packs, p)
	}
	for _, name := range looseObjects(dir, anyAge) {
		if info, err := os.Stat(name); err == nil {
			f.loose[plumbing.NewHash(filepath.Base(filepath.Dir(name))+filepath.Base(name))] = info.Size()
		}
	}
	return f
}

// sizeWithObjects returns the size of what stays together with some objects.
func (f *storedFiles) sizeWithObjects(objects []Hash) int64 {
	f.moreSize, f.morePacks, f.moreSingle = f.size, map[*packFile]bool{}, nil
	for _, hash := range objects {
		if size, ok := f.loose[hash]; ok {
			f.moreSize += size
			f.moreSingle = append(f.moreSingle, hash)
			continue
		}
		var found *packFile
		for _, p := range f.packs {
			if p.index == nil {
				continue
			}
			if within, err := p.index.Contains(hash); err != nil || !within {
				continue
			}
			found = p
			if f.stay[p] || f.morePacks[p] {
				break // it exists anyway
			}
		}
		if found != nil && !f.stay[found] && !f.morePacks[found] {
			f.morePacks[found] = true
			f.moreSize += found.size
		}
	}
	return f.moreSize
}

// keepLastMeasured has those stay that the last call of with was about.
func (f *storedFiles) keepLastMeasured() {
	f.size = f.moreSize
	for p := range f.morePacks {
		f.stay[p] = true
	}
	for _, hash := range f.moreSingle {
		f.single[hash] = true
	}
}

// removeUnkeptFiles removes all that do not stay.
func (f *storedFiles) removeUnkeptFiles() error {
	var errs []error
	gone := func(name string) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, p := range f.packs {
		if !f.stay[p] {
			gone(p.base + ".idx") // without it the pack is not looked at
			gone(p.base + ".pack")
		}
	}
	for hash := range f.loose {
		text := hash.String()
		if !f.single[hash] {
			gone(filepath.Join(f.dir, text[:2], text[2:]))
		}
	}
	return errors.Join(errs...)
}
