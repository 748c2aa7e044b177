// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

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
	objectStore
	limits Limits

	// fetchLock serializes fetches and writes, so that the same commit is not fetched twice. It is a channel because
	// waiting must end with the context.
	fetchLock           chan struct{}
	lastCompactionCheck time.Time       // when it was last looked what could be compacted; for the holder of the turn
	heads               map[string]Hash // what references were fetched at last; for the holder of the turn

	trees treeCache
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
	return &Mirror{
		objectStore: objectStore{dir: dir, files: newIndexed(dir)}, limits: s.limits, fetchLock: make(chan struct{}, 1),
	}
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

// lockMirror acquires the turn in this process and the lock among processes.
func (m *Mirror) lockMirror(ctx context.Context) (unlock func(), err error) {
	select {
	case m.fetchLock <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release, err := lockFile(ctx, m.dir)
	if err != nil {
		<-m.fetchLock
		return nil, err
	}
	return func() { release(); <-m.fetchLock }, nil
}

func lockFile(ctx context.Context, dir string) (func(), error) {
	file, err := os.OpenFile(filepath.Join(dir, "prerig.lock"), os.O_CREATE|os.O_RDWR, 0o600)
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

// keepTrees is how many commits' trees are kept in memory.
const keepTrees = 4

// treeCache keeps the trees of the last commits.
type treeCache struct {
	// Lock order: mu before that of objectStore, which a tree acquires while it holds a lock of its own.
	mu    sync.Mutex
	trees []*tree.Tree // oldest first
}

// Tree returns the files of a fetched commit. It returns the same value for the same commit, so that what one
// render has read is available to the next.
func (m *Mirror) Tree(commit *Commit) *tree.Tree {
	c := &m.trees
	c.mu.Lock()
	defer c.mu.Unlock()
	id := commit.Tree.String()
	if i := slices.IndexFunc(c.trees, func(t *tree.Tree) bool { return t.ID() == id }); i >= 0 {
		return c.trees[i]
	}
	t := tree.New(&mirrorObjects{m}, id)
	if n := len(c.trees); n > 0 {
		t = c.trees[n-1].Next(id)
	}
	c.trees = append(slices.Clone(c.trees[max(0, len(c.trees)+1-keepTrees):]), t)
	return t
}

func (c *treeCache) dropTrees() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trees = nil
}
