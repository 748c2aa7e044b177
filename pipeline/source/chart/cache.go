// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// archiveCache keeps archives in a directory. Each read verifies the digest, so damage is only a miss, and no
// failure of the directory stops a render.
type archiveCache struct {
	dir  string
	size int64
}

const cachedSuffix = ".tgz"

// getVerifiedArchive returns an archive that has a digest.
func (c archiveCache) getVerifiedArchive(key, digest string) ([]byte, bool) {
	at := filepath.Join(c.dir, key+cachedSuffix)
	content, err := os.ReadFile(at)
	if err != nil {
		return nil, false
	}
	if DigestOf(content) != digest {
		_ = os.Remove(at)
		return nil, false
	}
	now := time.Now()
	_ = os.Chtimes(at, now, now) // the least recently used archive is evicted first
	return content, true
}

// storeArchive keeps an archive and makes room for it.
func (c archiveCache) storeArchive(key string, content []byte) {
	if os.MkdirAll(c.dir, 0o700) != nil {
		return
	}
	file, err := os.CreateTemp(c.dir, "new-*")
	if err != nil {
		return
	}
	_, err = file.Write(content)
	closed := file.Close()
	if err == nil {
		err = closed
	}
	now := time.Now()
	_ = os.Chtimes(file.Name(), now, now) // by this machine's clock, as get does: that of a file server may be another
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(c.dir, key+cachedSuffix))
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return
	}
	c.makeRoom()
}

// abandonedAfter is the age at which a temporary file is assumed to belong to a dead process.
const abandonedAfter = time.Hour

// makeRoom removes the archives that were not used for longest, until the rest fits.
func (c archiveCache) makeRoom() {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	var kept []fs.FileInfo
	var total int64
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if !strings.HasSuffix(info.Name(), cachedSuffix) {
			if time.Since(info.ModTime()).Abs() > abandonedAfter {
				_ = os.Remove(filepath.Join(c.dir, info.Name()))
			}
			continue
		}
		kept, total = append(kept, info), total+info.Size()
	}
	now := time.Now()
	used := func(info fs.FileInfo) time.Time {
		if info.ModTime().After(now) {
			return time.Time{} // used before the clock was set back: it would stay in the place of all others
		}
		return info.ModTime()
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int {
		return cmp.Or(used(a).Compare(used(b)), cmp.Compare(a.Name(), b.Name()))
	})
	for _, info := range kept {
		if total <= c.size {
			return
		}
		if os.Remove(filepath.Join(c.dir, info.Name())) == nil {
			total -= info.Size()
		}
	}
}
