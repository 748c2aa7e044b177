// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Finder finds the policy that is nearest to a file. The zero value is ready, and remembers the directories that it has
// seen.
type Finder struct {
	seen map[string]string
	// Passed are the files called prerig.yaml that are no policies and were passed over: configurations of the daemon.
	Passed []string
}

// Near returns the path of the prerig.yaml that is nearest to a directory, in it or above it, or "" if none exists.
// The search ends at the root of the repository, which is the directory with .git. Outside of a repository it ends
// at the home directory or the file system's root, and before a directory that all users share, such as /tmp: a
// policy decides what runs, and another user's must not.
func (f *Finder) Near(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("searching for a policy: %w", err)
	}
	found, err := f.searchUp(start)
	if err != nil || found == "" {
		return "", err
	}
	return DisplayPath(found), nil
}

func (f *Finder) searchUp(dir string) (string, error) {
	if found, ok := f.seen[dir]; ok {
		return found, nil
	}
	found, err := f.findIn(dir)
	if err != nil {
		return "", err
	}
	if above := filepath.Dir(dir); found == "" && above != dir && !isBoundary(dir) && !isShared(above) {
		if found, err = f.searchUp(above); err != nil {
			return "", err
		}
	}
	if f.seen == nil {
		f.seen = map[string]string{}
	}
	f.seen[dir] = found
	return found, nil
}

// findIn returns the policy in one directory.
func (f *Finder) findIn(dir string) (string, error) {
	path := filepath.Join(dir, FileName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// Another policy in its place would make different decisions.
		if _, err := os.Lstat(path); err == nil {
			return "", fmt.Errorf("searching for a policy: %s is a broken link", DisplayPath(path))
		}
		return "", nil
	case err != nil:
		return "", fmt.Errorf("searching for a policy: %w", err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("searching for a policy: %s is not a regular file", DisplayPath(path))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("searching for a policy: %w", err)
	}
	if errors.Is(mistakenFileError(path, data), errDaemon) {
		f.Passed = append(f.Passed, DisplayPath(path))
		return "", nil
	}
	return path, nil
}

// isBoundary reports whether the search ends in a directory: at the root of a repository, and at home.
func isBoundary(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
		return true
	}
	home, err := os.UserHomeDir()
	return err == nil && dir == filepath.Clean(home)
}

// isShared reports whether anybody may put files into a directory, which the sticky bit shows.
func isShared(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode()&os.ModeSticky != 0
}

// DisplayPath is a path as people read it: from the current directory where the file is below that.
func DisplayPath(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(here, absolute); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return filepath.ToSlash(rel)
	}
	return path
}
