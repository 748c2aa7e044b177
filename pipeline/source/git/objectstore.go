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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// objectStore reads the objects of a mirror. It is safe for use by several goroutines, while other processes change
// the packs.
type objectStore struct {
	dir   string // of the mirror
	files indexedFS

	mu      sync.Mutex // for storage, which is not safe for use by several goroutines
	storage *filesystem.Storage
	listed  packList // the packs that storage knows, or the earlier ones
	settled bool     // storage was opened long enough after listed was first seen, so that a later change shows

	unreadable atomic.Pointer[Hash] // an object that is damaged
}

// lockAndReopen is reopenStorage for callers that do not hold mu.
func (o *objectStore) lockAndReopen() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reopenStorage()
}

// cachedObjects is how much content of objects a mirror holds in memory. A daemon has a mirror for each repository, so hundreds of
// sources count hundreds of times. Directories are kept, in parsed form, by package tree.
const cachedObjects = cache.MiByte

// reopenStorage forgets what storage knows of the packs: it reads their indexes again when it needs them.
func (o *objectStore) reopenStorage() {
	now := listPacks(o.dir)
	if !now.equal(o.listed) {
		now.seen = time.Now()
		o.listed = now
	}
	o.settled = time.Since(o.listed.seen) >= raceTime
	o.storage = filesystem.NewStorageWithOptions(o.files, cache.NewObjectLRU(cachedObjects), filesystem.Options{})
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

// listPacks returns the current packs of a mirror.
func listPacks(dir string) packList {
	dir = filepath.Join(dir, "objects", "pack")
	var list packList
	if info, err := os.Stat(dir); err == nil {
		list.changed = info.ModTime()
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*.idx"))
	list.names = strings.Join(names, "\n")
	return list
}

// maxReopened bounds how often the packs are listed again for one object: each time another process has changed them
// meanwhile.
const maxReopened = 5

// encodedObject reads one object. An object that cannot be had may be in a pack that is newer than what storage knows, also one
// that another process has made in place of others. Objects in files of their own are looked for each time.
func (o *objectStore) encodedObject(kind plumbing.ObjectType, id Hash) (plumbing.EncodedObject, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	object, err := o.storage.EncodedObject(kind, id)
	for round := range maxReopened {
		doubtful := round == 0 && !o.settled
		if err == nil || !doubtful && listPacks(o.dir).equal(o.listed) {
			break
		}
		o.reopenStorage()
		object, err = o.storage.EncodedObject(kind, id)
	}
	if err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
		o.reopenStorage() // where one index could not be read, it does not know of the others
	}
	return object, o.recordDamagedObject(id, err)
}

// Has reports whether an object is in the mirror.
func (o *objectStore) Has(id Hash) bool {
	_, err := o.encodedObject(plumbing.AnyObject, id)
	return err == nil
}

// readObject returns the content of an object up to a size.
func (o *objectStore) readObject(kind plumbing.ObjectType, id Hash, max int64) ([]byte, error) {
	object, err := o.encodedObject(kind, id)
	if err != nil {
		return nil, err
	}
	if object.Size() > max {
		return nil, &tree.LimitError{What: "size of the file in bytes", Limit: max}
	}
	// Reading from a pack uses the storage as well.
	o.mu.Lock()
	defer o.mu.Unlock()
	r, err := object.Reader()
	if err != nil {
		return nil, o.recordDamagedObject(id, err)
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
			return nil, o.recordDamagedObject(id, err)
		}
	}
}

// completeCommit returns a commit that is here with everything in it. One that is not among those that are kept may have lost files
// that it had in common with others when the mirror was compacted.
func (o *objectStore) completeCommit(hash Hash) (*Commit, error) {
	commit, err := o.Commit(hash)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(shallowCommits(o.dir), commit.Hash) {
		return nil, plumbing.ErrObjectNotFound
	}
	return commit, nil
}

// Commit reads a commit from the mirror, following tags. Its root directory is in the mirror as well.
func (o *objectStore) Commit(hash Hash) (*Commit, error) {
	for range 5 {
		found, err := o.encodedObject(plumbing.AnyObject, hash)
		if err != nil {
			return nil, err
		}
		switch found.Type() {
		case plumbing.CommitObject:
			return o.decodeCommit(found)
		case plumbing.TagObject:
			tag := &object.Tag{}
			if err := tag.Decode(found); err != nil {
				return nil, fmt.Errorf("reading tag %s: %w", hash, err)
			}
			hash = tag.Target
		default:
			return nil, fmt.Errorf("%s is a %s, not a commit", hash, found.Type())
		}
	}
	return nil, fmt.Errorf("tag %s leads to no commit", hash)
}

func (o *objectStore) decodeCommit(encoded plumbing.EncodedObject) (*Commit, error) {
	o.mu.Lock()
	c := &object.Commit{}
	err := c.Decode(encoded)
	o.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("reading commit: %w", err)
	}
	if !o.Has(c.TreeHash) {
		return nil, fmt.Errorf("reading the files of commit %s: %w", c.Hash, plumbing.ErrObjectNotFound)
	}
	subject, body, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
	return &Commit{
		Hash: c.Hash, Tree: c.TreeHash, Parents: slices.Clone(c.ParentHashes), Author: c.Author.Name, AuthorEmail: c.Author.Email,
		ByAuthor: c.Author.Name == c.Committer.Name && c.Author.Email == c.Committer.Email && c.Author.When.Equal(c.Committer.When),
		Date:     c.Committer.When.UTC().Truncate(time.Second), Subject: subject, Body: strings.TrimSpace(body),
	}, nil
}
