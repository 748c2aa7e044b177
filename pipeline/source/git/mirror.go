// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/prerig/prerig/pipeline/internal/process/filelock"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Store keeps the mirrors of all repositories in one directory. It is safe for use by several goroutines, and several
// processes may share the directory.
type Store struct {
	dir    string
	limits Limits

	mu      sync.Mutex
	mirrors map[string]*Mirror
}

// NewStore keeps mirrors below dir, which is made when it is needed.
func NewStore(dir string, limits Limits) *Store {
	return &Store{dir: dir, limits: limits, mirrors: map[string]*Mirror{}}
}

// Mirror of one repository. Its objects only ever grow, until Compact.
type Mirror struct {
	dir    string
	limits Limits

	// fetchLock serializes fetches and writes, so that the same commit is not fetched twice. It is a channel because
	// waiting must end with the context.
	fetchLock           chan struct{}
	lastCompactionCheck time.Time       // when it was last looked what could be compacted; for the holder of the turn
	heads               map[string]Hash // what references were fetched at last; for the holder of the turn

	files   indexedFS
	mu      sync.Mutex // for storage, which is not safe for use by several goroutines
	storage *filesystem.Storage
	listed  packList // the packs that storage knows, or the earlier ones
	settled bool     // storage was opened long enough after listed was first seen, so that a later change shows

	// treesMu is never taken by who holds mu: a tree that is read holds a lock of its own and then wants mu.
	treesMu   sync.Mutex
	trees     map[Hash]*tree.Tree
	treeOrder []Hash // of trees, oldest first

	unreadable atomic.Pointer[Hash] // an object that is damaged
}

// Mirror returns the mirror of a URL, and creates an empty one if none exists. The directory's name is a digest of
// the URL.
func (s *Store) Mirror(url string) (*Mirror, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.mirrors[url]; ok {
		return m, nil
	}
	sum := sha256.Sum256([]byte(url))
	m := s.newMirror(filepath.Join(s.dir, hex.EncodeToString(sum[:12])+".git"))
	if err := m.init(); err != nil {
		return nil, fmt.Errorf("making a mirror of %s: %w", url, err)
	}
	s.mirrors[url] = m
	return m, nil
}

func (s *Store) newMirror(dir string) *Mirror {
	m := &Mirror{dir: dir, limits: s.limits, fetchLock: make(chan struct{}, 1), trees: map[Hash]*tree.Tree{}}
	m.files = newIndexed(m.dir)
	return m
}

func (m *Mirror) init() error {
	for _, sub := range []string{"objects/pack", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(m.dir, sub), 0o700); err != nil {
			return err
		}
	}
	for name, content := range map[string]string{
		"HEAD":   "ref: refs/heads/none\n",
		"config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
	} {
		if _, err := os.Stat(filepath.Join(m.dir, name)); err == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	m.reopenStorage()
	return m.sweepTemporary()
}

// reopenStorage forgets what storage knows of the packs: it reads their indexes again when it needs them.
func (m *Mirror) reopenStorage() {
	now := m.listPacks()
	if !now.equal(m.listed) {
		now.seen = time.Now()
		m.listed = now
	}
	m.settled = time.Since(m.listed.seen) >= raceTime
	m.storage = filesystem.NewStorageWithOptions(m.files, cache.NewObjectLRU(8*cache.MiByte), filesystem.Options{})
}

// packList lists the packs at one time, and when the directory changed last by the clock of its file system, since
// a pack may appear and disappear between two listings. That clock is only ever compared with itself: it may be
// ahead of this machine's, or behind.
type packList struct {
	names   string
	changed time.Time
	seen    time.Time // when this process first saw it, by a clock that is never set
}

func (l packList) equal(other packList) bool {
	return l.names == other.names && l.changed.Equal(other.changed)
}

// raceTime is how long after a change of a directory another one may leave it with the same time.
const raceTime = 50 * time.Millisecond

// listPacks returns the current packs.
func (m *Mirror) listPacks() packList {
	dir := filepath.Join(m.dir, "objects", "pack")
	var list packList
	if info, err := os.Stat(dir); err == nil {
		list.changed = info.ModTime()
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*.idx"))
	list.names = strings.Join(names, "\n")
	return list
}

// lockMirror acquires the turn in this process and the lock among processes.
func (m *Mirror) lockMirror(ctx context.Context) (unlock func(), err error) {
	select {
	case m.fetchLock <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release, err := m.lockFile(ctx)
	if err != nil {
		<-m.fetchLock
		return nil, err
	}
	return func() { release(); <-m.fetchLock }, nil
}

func (m *Mirror) lockFile(ctx context.Context) (func(), error) {
	file, err := os.OpenFile(filepath.Join(m.dir, "prerig.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	// Asked again and again, as a call that waits could not be left behind without the file.
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		have, err := filelock.Try(file)
		if have {
			return func() { file.Close() }, nil
		}
		if err == nil {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("locking the mirror: %w", err)
		}
	}
}

// maxReopened bounds how often the packs are listed again for one object: each time another process has changed them
// meanwhile.
const maxReopened = 5

// encodedObject reads one object. An object that cannot be had may be in a pack that is newer than what storage knows, also one
// that another process has made in place of others. Objects in files of their own are looked for each time.
func (m *Mirror) encodedObject(kind plumbing.ObjectType, id Hash) (plumbing.EncodedObject, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	object, err := m.storage.EncodedObject(kind, id)
	for round := range maxReopened {
		doubtful := round == 0 && !m.settled
		if err == nil || !doubtful && m.listPacks().equal(m.listed) {
			break
		}
		m.reopenStorage()
		object, err = m.storage.EncodedObject(kind, id)
	}
	if err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
		m.reopenStorage() // where one index could not be read, it does not know of the others
	}
	return object, m.recordDamagedObject(id, err)
}

// Has reports whether an object is in the mirror.
func (m *Mirror) Has(id Hash) bool {
	_, err := m.encodedObject(plumbing.AnyObject, id)
	return err == nil
}

// readObject returns the content of an object up to a size.
func (m *Mirror) readObject(kind plumbing.ObjectType, id Hash, max int64) ([]byte, error) {
	object, err := m.encodedObject(kind, id)
	if err != nil {
		return nil, err
	}
	if object.Size() > max {
		return nil, &tree.LimitError{What: "size of the file in bytes", Limit: max}
	}
	// Reading from a pack uses the storage as well.
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := object.Reader()
	if err != nil {
		return nil, m.recordDamagedObject(id, err)
	}
	defer r.Close()
	content := make([]byte, 0, object.Size()+1) // one more, so that reading on to the end does not double it
	for {
		if len(content) == cap(content) {
			content = slices.Grow(content, 1)
		}
		n, err := r.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		if errors.Is(err, io.EOF) {
			return content, nil
		}
		if err != nil {
			return nil, m.recordDamagedObject(id, err)
		}
	}
}

// keepTrees is how many commits' trees are kept in memory.
const keepTrees = 4

// Tree returns the files of a fetched commit. It returns the same value for the same commit, so that what one
// render has read is available to the next.
func (m *Mirror) Tree(commit *Commit) *tree.Tree {
	m.treesMu.Lock()
	defer m.treesMu.Unlock()
	if t, ok := m.trees[commit.Tree]; ok {
		return t
	}
	t := tree.New(&mirrorObjects{m}, commit.Tree.String())
	if n := len(m.treeOrder); n > 0 {
		t = m.trees[m.treeOrder[n-1]].Next(commit.Tree.String())
	}
	m.trees[commit.Tree] = t
	if m.treeOrder = append(m.treeOrder, commit.Tree); len(m.treeOrder) > keepTrees {
		delete(m.trees, m.treeOrder[0])
		m.treeOrder = m.treeOrder[1:]
	}
	return t
}
