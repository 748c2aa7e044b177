// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"container/list"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/disk"
)

// Options of a Store.
type Options struct {
	// Dir is the directory, which is created if missing. It must not contain other files.
	Dir string
	// MaxBytes bounds the files together.
	MaxBytes int64
	// Log receives reports of damaged entries and failed writes. It may be nil.
	Log *slog.Logger
}

// Bounds beside Options.MaxBytes.
const (
	maxVariants = 8 // of a slot
	maxShare    = 8 // an entry has at most this part of all
)

// reserve is the room on the disk that is left to others, above what the queue needs.
const reserve = 4 * disk.MinAvailable

// Store is the directory. It is safe for concurrent use, and several processes may have the same.
type Store struct {
	options Options

	mu               sync.Mutex
	slots            map[string][]*list.Element
	used             *list.List // of *entry, the last used first
	bytes            int64
	writeErrorLogged bool // the failed write was logged
}

// entry is a file.
type entry struct {
	slot, variant string
	size          int64
}

const temporary = ".new-"

// Open returns the store of a directory with what is in it already.
func Open(o Options) *Store {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{options: o, slots: map[string][]*list.Element{}, used: list.New()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loadIndexFromDisk()
	s.evictLeastRecentlyUsed(s.options.MaxBytes)
	return s
}

// loadIndexFromDisk loads the index from disk and removes leftover temporary files.
func (s *Store) loadIndexFromDisk() {
	type aged struct {
		entry
		at time.Time
	}
	var found []aged
	dirs, _ := os.ReadDir(s.options.Dir)
	for _, dir := range dirs {
		files, _ := os.ReadDir(filepath.Join(s.options.Dir, dir.Name()))
		for _, file := range files {
			info, err := file.Info()
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			slot, variant, ok := strings.Cut(file.Name(), "-")
			if !ok || strings.HasPrefix(file.Name(), temporary) {
				if time.Since(info.ModTime()).Abs() > time.Minute { // another process may be writing it
					_ = os.Remove(filepath.Join(s.options.Dir, dir.Name(), file.Name()))
				}
				continue
			}
			found = append(found, aged{entry{slot, variant, info.Size()}, info.ModTime()})
		}
	}
	slices.SortFunc(found, func(a, b aged) int { return a.at.Compare(b.at) })
	for _, one := range found {
		s.addMostRecentEntry(one.entry)
	}
}

// addMostRecentEntry notes an entry as the one that was used last.
func (s *Store) addMostRecentEntry(e entry) {
	s.slots[e.slot] = append(s.slots[e.slot], s.used.PushFront(&e))
	s.bytes += e.size
}

// forgetEntry forgets an entry.
func (s *Store) forgetEntry(at *list.Element) {
	e := s.used.Remove(at).(*entry)
	s.bytes -= e.size
	rest := slices.DeleteFunc(s.slots[e.slot], func(other *list.Element) bool { return other == at })
	s.slots[e.slot] = rest
	if len(rest) == 0 {
		delete(s.slots, e.slot)
	}
}

// removeEntryFile removes an entry and its file.
func (s *Store) removeEntryFile(at *list.Element) {
	e := at.Value.(*entry)
	s.forgetEntry(at)
	_ = os.Remove(s.path(e.slot, e.variant))
}

// evictLeastRecentlyUsed removes what was used least recently until the rest is small enough.
func (s *Store) evictLeastRecentlyUsed(to int64) {
	for s.bytes > to && s.used.Len() > 0 {
		s.removeEntryFile(s.used.Back())
	}
}

func (s *Store) path(slot, variant string) string {
	return filepath.Join(s.options.Dir, slot[:min(2, len(slot))], slot+"-"+variant)
}

// Variants returns the variants of a slot, those that were used last first.
func (s *Store) Variants(slot string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, at := range slices.Backward(s.slots[slot]) {
		out = append(out, at.Value.(*entry).variant)
	}
	return out
}

// find returns the entry of a key.
func (s *Store) find(slot, variant string) *list.Element {
	for _, at := range s.slots[slot] {
		if at.Value.(*entry).variant == variant {
			return at
		}
	}
	return nil
}

// Read returns the content of an entry; false where it cannot be used.
func (s *Store) Read(slot, variant string) ([]byte, bool) {
	text, err := os.ReadFile(s.path(slot, variant))
	if err == nil {
		content, err := unpackSealedContent(slot, variant, text)
		if err == nil {
			return content, true
		}
		s.options.Log.Warn("a remembered build is damaged and was removed", "entry", slot+"-"+variant, "error", err)
	}
	s.Remove(slot, variant)
	return nil, false
}

// Use notes that an entry was of use.
func (s *Store) Use(slot, variant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.find(slot, variant)
	if at == nil {
		return
	}
	s.used.MoveToFront(at)
	of := s.slots[slot]
	s.slots[slot] = append(slices.DeleteFunc(of, func(other *list.Element) bool { return other == at }), at)
	now := time.Now()
	_ = os.Chtimes(s.path(slot, variant), now, now) // the order is one of convenience
}

// Remove removes an entry.
func (s *Store) Remove(slot, variant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.find(slot, variant); at != nil {
		s.removeEntryFile(at)
	}
}

// Write stores an entry, if the space permits.
func (s *Store) Write(slot, variant string, content []byte) {
	text := packWithDigest(slot, variant, content)
	size := int64(len(text))
	if size > s.options.MaxBytes/maxShare {
		return
	}
	s.mu.Lock()
	if at := s.find(slot, variant); at != nil {
		s.forgetEntry(at) // it is rewritten
	}
	if of := s.slots[slot]; len(of) >= maxVariants {
		s.removeEntryFile(of[0])
	}
	s.evictLeastRecentlyUsed(s.options.MaxBytes - size)
	s.mu.Unlock()
	err := s.makeRoom(size)
	if err == nil {
		err = writeFile(s.path(slot, variant), text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if !s.writeErrorLogged {
			s.options.Log.Warn("builds cannot be remembered for now", "error", err)
		}
		s.writeErrorLogged = true
		return
	}
	s.writeErrorLogged = false
	if s.find(slot, variant) == nil {
		s.addMostRecentEntry(entry{slot, variant, size})
	}
}

// makeRoom evicts entries until the disk has enough free space.
func (s *Store) makeRoom(size int64) error {
	if err := os.MkdirAll(s.options.Dir, 0o700); err != nil {
		return err
	}
	for {
		space, err := disk.Of(s.options.Dir)
		if err == nil {
			err = space.Problem()
		}
		if err == nil && space.Available >= reserve+uint64(size) {
			return nil
		}
		s.mu.Lock()
		empty := s.used.Len() == 0
		s.evictLeastRecentlyUsed(s.bytes - max(size, 1))
		s.mu.Unlock()
		if empty && err != nil {
			return err
		}
		if empty {
			return errNoRoom
		}
	}
}

// writeFile writes a file atomically as long as the machine runs; leftovers of a machine crash do not match their
// digest.
func writeFile(name string, text []byte) error {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, temporary) // only this user may read it
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	closed := file.Close()
	if err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
