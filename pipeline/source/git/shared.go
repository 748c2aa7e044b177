// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// sharedFS is a repository that has objects of others, as git clone --shared and --reference make one: what it lacks below objects is
// looked for there.
type sharedFS struct {
	billy.Filesystem
	others []billy.Filesystem // the directories of objects of these
}

// maxShared is how many repositories may share their objects with one, as in git.
const maxShared = 5

// objectsDirectory returns the directory of the objects of a repository, which those of its work trees have in common.
func objectsDirectory(root string) string {
	common, err := os.ReadFile(filepath.Join(root, "commondir"))
	if err != nil {
		return filepath.Join(root, "objects")
	}
	dir := strings.TrimSpace(string(common))
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	return filepath.Join(dir, "objects")
}

// withShared returns a repository's files with the objects that others share with it, nil where none do.
func withShared(files billy.Filesystem, objects string) (billy.Filesystem, error) {
	shared := sharedFS{Filesystem: files}
	next := []string{objects}
	for depth := 0; len(next) > 0 && depth < maxShared; depth++ {
		var found []string
		for _, dir := range next {
			more, err := alternatesOf(dir)
			if err != nil {
				return nil, err
			}
			found = append(found, more...)
		}
		for _, dir := range found {
			shared.others = append(shared.others, osfs.New(dir))
		}
		next = found
	}
	if len(shared.others) == 0 {
		return nil, nil
	}
	return shared, nil
}

// alternatesOf returns the directories that the file of alternates of a directory of objects names.
func alternatesOf(objects string) (out []string, err error) {
	text, err := os.ReadFile(filepath.Join(objects, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the alternates of the repository: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		dir := strings.TrimSpace(line)
		if dir == "" || strings.HasPrefix(dir, "#") {
			continue
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(objects, dir)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("the repository shares the objects of %s, which is not there: make it available, or clone again without --shared and --reference", dir)
		}
		out = append(out, dir)
	}
	return out, nil
}

// inObjects returns the path of a file below the directory of objects.
func inObjects(name string) (string, bool) {
	return strings.CutPrefix(filepath.ToSlash(filepath.Clean(name)), "objects/")
}

// Open implements billy.Basic.
func (f sharedFS) Open(name string) (billy.File, error) { return f.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile implements billy.Basic.
func (f sharedFS) OpenFile(name string, flag int, mode fs.FileMode) (billy.File, error) {
	file, err := f.Filesystem.OpenFile(name, flag, mode)
	below, ok := inObjects(name)
	if err == nil || !ok || flag != os.O_RDONLY {
		return file, err
	}
	for _, other := range f.others {
		if found, failed := other.Open(below); failed == nil {
			return found, nil
		}
	}
	return file, err
}

// Stat implements billy.Basic.
func (f sharedFS) Stat(name string) (fs.FileInfo, error) {
	info, err := f.Filesystem.Stat(name)
	below, ok := inObjects(name)
	if err == nil || !ok {
		return info, err
	}
	for _, other := range f.others {
		if found, failed := other.Stat(below); failed == nil {
			return found, nil
		}
	}
	return info, err
}

// ReadDir implements billy.Dir.
func (f sharedFS) ReadDir(name string) ([]fs.FileInfo, error) {
	all, err := f.Filesystem.ReadDir(name)
	below, ok := inObjects(name)
	if !ok {
		return all, err
	}
	known := map[string]bool{}
	for _, info := range all {
		known[info.Name()] = true
	}
	for _, other := range f.others {
		more, failed := other.ReadDir(below)
		if failed != nil {
			continue
		}
		err = nil
		for _, info := range more {
			if !known[info.Name()] {
				known[info.Name()] = true
				all = append(all, info)
			}
		}
	}
	return all, err
}

// checkComplete returns an error if a clone lacks files of a commit, as a partial clone does: a review never fetches.
func (l *Local) checkComplete(revision string, commit *Commit) error {
	config, err := l.repository.Config()
	if err != nil {
		return fmt.Errorf("reading the configuration of the repository: %w", err)
	}
	remote := ""
	for _, section := range config.Raw.Section("remote").Subsections {
		if section.Option("promisor") == "true" || section.Option("partialclonefilter") != "" {
			remote = section.Name
		}
	}
	if remote == "" {
		return nil
	}
	root, err := l.repository.TreeObject(plumbing.Hash(commit.Tree))
	missing, example := 0, ""
	if err == nil {
		walker := object.NewTreeWalker(root, true, nil)
		defer walker.Close()
		for {
			name, entry, failed := walker.Next()
			if failed != nil {
				if !errors.Is(failed, io.EOF) {
					err = failed
				}
				break
			}
			if entry.Mode.IsFile() && !isBelowHidden(name) && l.repository.Storer.HasEncodedObject(entry.Hash) != nil {
				missing, example = missing+1, name
			}
		}
	}
	if missing == 0 && err == nil {
		return nil
	}
	what := example
	if missing > 1 {
		what = fmt.Sprintf("%d files, such as %s,", missing, example)
	}
	if err != nil {
		what = "directories"
	}
	return fmt.Errorf("the clone is partial (git clone --filter) and lacks %s of %s; fetch them: git fetch --refetch --no-filter %s",
		what, revision, remote)
}

// isBelowHidden reports whether a file is in a hidden directory, whose files are for other tools.
func isBelowHidden(name string) bool {
	return strings.HasPrefix(name, ".") && strings.Contains(name, "/") || strings.Contains(path.Dir(name), "/.")
}

// CommitInFull is Commit, with an error for a partial clone that lacks files of it.
func (l *Local) CommitInFull(revision string) (*Commit, *tree.Tree, error) {
	commit, files, err := l.Commit(revision)
	if err == nil {
		err = l.checkComplete(revision, commit)
	}
	return commit, files, err
}
