// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
)

// A pack exists when its index exists, as in git: it is stored before its index and removed after it. go-git lists
// packs and fails if one has no index, which is the case for a moment whenever another process stores or removes
// one, and forever if that process was killed in between.

// indexedFS is a file system in which packs without an index are not listed.
type indexedFS struct{ billy.Filesystem }

func newIndexed(dir string) indexedFS { return indexedFS{osfs.New(dir)} }

// ReadDir implements billy.Dir.
func (f indexedFS) ReadDir(dir string) ([]fs.FileInfo, error) {
	all, err := f.Filesystem.ReadDir(dir)
	if err != nil || filepath.Base(dir) != "pack" {
		return all, err
	}
	there := map[string]bool{}
	for _, info := range all {
		there[info.Name()] = true
	}
	listed := all[:0]
	for _, info := range all {
		if base, ok := strings.CutSuffix(info.Name(), ".pack"); !ok || there[base+".idx"] {
			listed = append(listed, info)
		}
	}
	return listed, nil
}

// tidyFS is a file system that tracks the most recent temporary file. go-git leaves an object's temporary file
// open, and on the disk, if the object does not fit.
type tidyFS struct {
	indexedFS
	last billy.File
}

// TempFile implements billy.TempFile. go-git creates an object next to the packs, in a directory whose time signals
// to readers that its packs may have changed: they would read the indexes of all packs again, which is slow with a
// hundred thousand objects.
func (f *tidyFS) TempFile(dir, prefix string) (billy.File, error) {
	if filepath.Base(dir) == "pack" {
		dir = filepath.Dir(dir)
	}
	file, err := f.indexedFS.TempFile(dir, prefix)
	f.last = file
	return file, err
}

// discardLast removes the last file if it still exists.
func (f *tidyFS) discardLast() {
	if f.last != nil {
		_ = f.last.Close()
		_ = f.Remove(f.last.Name())
	}
}

// sweepTemporary removes files that a killed process has left behind, unless the mirror is in use.
func (m *Mirror) sweepTemporary() error {
	// Try only once: the holder of the lock may work for long, and the next start sweeps as well.
	once, cancel := context.WithCancel(context.Background())
	cancel()
	unlock, busy := lockFile(once, m.dir)
	if busy != nil {
		return nil
	}
	defer unlock()
	return m.sweepLeftovers()
}

// sweepLeftovers is sweepTemporary for the holder of the lock.
func (m *Mirror) sweepLeftovers() error {
	names, err := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "*"))
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
	}
	begun, err := filepath.Glob(filepath.Join(m.dir, "objects", "tmp_*"))
	if err != nil {
		return err
	}
	for _, name := range append(names, begun...) {
		if base, ok := strings.CutSuffix(name, ".idx"); ok && !there[base+".pack"] {
			return m.recreateMirror() // no process removes a pack before its index: the disk has lost it
		}
		base, ok := strings.CutSuffix(name, ".pack")
		if strings.HasPrefix(filepath.Base(name), "tmp_") || ok && !there[base+".idx"] {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}
