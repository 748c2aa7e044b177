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

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// A mirror is a copy, and a crash of the machine or its disk can damage it. What cannot be read is noted when it is found,
// and the next fetch throws the copy away and begins a new one.

// recordDamagedObject records an object that exists and cannot be read, and returns the error unchanged.
func (o *objectStore) recordDamagedObject(id Hash, err error) error {
	var limit *tree.LimitError
	if err == nil || errors.Is(err, plumbing.ErrObjectNotFound) || errors.As(err, &limit) || !isContentError(err) {
		return err
	}
	o.unreadable.Store(&id)
	return fmt.Errorf("the mirror is damaged and will be cloned again: %w", err)
}

// isContentError returns false for a system error, such as too many open files, after which the same file may well be
// readable. A file that is missing although its index exists is damage.
func isContentError(err error) bool {
	var path *fs.PathError
	return !errors.As(err, &path) || errors.Is(err, fs.ErrNotExist)
}

// Damaged reports whether something was found that cannot be read. The next fetch mends it.
func (o *objectStore) Damaged() bool { return o.unreadable.Load() != nil }

// discardDamagedObjects discards the damaged objects if the damage still exists: another process may have repaired it.
// The caller must hold the lock.
func (m *Mirror) discardDamagedObjects() error {
	id := m.unreadable.Load()
	if id == nil {
		return nil
	}
	if isReadable(filesystem.NewStorage(newIndexed(m.dir), cache.NewObjectLRU(0)), *id) {
		m.lockAndReopen()
		m.unreadable.Store(nil)
		return nil
	}
	return m.recreateMirror()
}

// isReadable reports whether an object can be read in full, or does not exist at all.
func isReadable(storage *filesystem.Storage, id Hash) bool {
	object, err := storage.EncodedObject(plumbing.AnyObject, id)
	if err != nil {
		return errors.Is(err, plumbing.ErrObjectNotFound)
	}
	r, err := object.Reader()
	if err != nil {
		return false
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err == nil
}

// recreateMirror makes the mirror empty.
func (m *Mirror) recreateMirror() error {
	m.trees.dropTrees()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range []string{"shallow", "objects"} {
		if err := os.RemoveAll(filepath.Join(m.dir, name)); err != nil {
			return fmt.Errorf("removing a damaged mirror: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(m.dir, "objects", "pack"), 0o700); err != nil {
		return fmt.Errorf("cloning a damaged mirror again: %w", err)
	}
	m.reopenStorage()
	m.unreadable.Store(nil)
	return nil
}

// isIncomplete reports whether a fetch has failed because the mirror lacks objects that it claimed to have.
func (o *objectStore) isIncomplete(err error) bool {
	return o.Damaged() || errors.Is(err, plumbing.ErrObjectNotFound) || errors.Is(err, packfile.ErrReferenceDeltaNotFound)
}
