// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/fn/manifest"
)

// maxFile bounds one file of pipelines.
const maxFile = 8 << 20

// parsedFiles caches the parsed files of a directory: reading a file is cheap compared to parsing its YAML, and
// most files are unchanged since the last read. The zero value is empty. It is not safe for concurrent use.
type parsedFiles struct{ byName map[string]parsedFile }

type parsedFile struct {
	sum     [sha256.Size]byte // of its content
	entries []Entry
}

// readDir reads every file, in the order of their names. Hidden files and directories are left out, as mounted ConfigMaps
// keep their versions in them.
func (p *parsedFiles) readDir(dir string) ([]Entry, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("reading pipelines: %s is not a directory", dir)
	}
	// A directory behind a link is walked where it is: WalkDir would take the link for a file.
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("reading pipelines: %w", err)
	}
	var found []*foundFile
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == dir {
				return err
			}
			found = append(found, &foundFile{entries: unreadableEntry(relativePath(dir, path), err)})
			return nil
		}
		if path != dir && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() || !manifest.IsFileName(path) {
			return nil
		}
		found = append(found, &foundFile{path: path, name: relativePath(dir, path)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading pipelines: %w", err)
	}
	return p.readFound(found), nil
}

// foundFile is a file of a directory, or the error for one that cannot be read.
type foundFile struct {
	path, name string
	parsed     *parsedFile // nil where it could not be read
	entries    []Entry
}

// readFound reads files on all processors, and remembers them and no others.
func (p *parsedFiles) readFound(found []*foundFile) (out []Entry) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, one := range found {
		if one.path == "" {
			continue
		}
		known := p.byName[one.name]
		group.Go(func() error {
			one.parsed, one.entries = readFile(one.path, one.name, known)
			return nil
		})
	}
	_ = group.Wait()
	p.byName = make(map[string]parsedFile, len(found))
	for _, one := range found {
		if one.parsed != nil {
			p.byName[one.name] = *one.parsed
		}
		out = append(out, one.entries...)
	}
	return out
}

// unreadableEntry returns the entry of a file or directory that cannot be read at all.
func unreadableEntry(name string, err error) []Entry {
	return []Entry{{Key: name, File: name, Digest: errorText(err), Err: err, Opaque: true}}
}

func relativePath(dir, path string) string {
	if name, err := filepath.Rel(dir, path); err == nil {
		return filepath.ToSlash(name)
	}
	return path
}

// readFile reads a file that may be known.
func readFile(path, name string, known parsedFile) (*parsedFile, []Entry) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadableEntry(name, fmt.Errorf("reading %s: %w", name, err))
	}
	if info.IsDir() {
		return nil, nil
	}
	if info.Size() > maxFile {
		return nil, unreadableEntry(name, fmt.Errorf("reading %s: the file has %d bytes, more than %d", name, info.Size(), maxFile))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadableEntry(name, fmt.Errorf("reading %s: %w", name, err))
	}
	now := parsedFile{sum: sha256.Sum256(data)}
	if now.sum == known.sum {
		now.entries = known.entries
	} else {
		now.entries = Parse(name, data)
	}
	return &now, now.entries
}
