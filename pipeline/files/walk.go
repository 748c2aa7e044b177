// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// walk goes through one directory that was named.
type walk struct {
	*reader
	root  string // as it was named
	real  string // behind all links, absolute
	found int    // manifests, read or not
}

// directory reads the manifests below a directory.
func (r *reader) directory(root string) {
	real, err := absolute(root)
	if err != nil {
		r.fail(root, err)
		return
	}
	w := &walk{reader: r, root: root, real: real}
	failed := len(r.Errors)
	w.walk(".")
	if w.found == 0 && len(r.Errors) == failed && r.ctx.Err() == nil {
		r.Errors = append(r.Errors, fmt.Errorf("reading %s: the directory has no .yaml, .yml or .json file", root))
	}
}

// walk reads the directory at rel below the root.
func (w *walk) walk(rel string) {
	entries, err := os.ReadDir(filepath.Join(w.root, rel))
	if err != nil {
		w.fail(filepath.Join(w.root, rel), err)
	}
	for _, e := range entries {
		if w.ctx.Err() != nil {
			return
		}
		at := filepath.Join(rel, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir() && w.dependencies(at):
			w.pass(Passed{Path: filepath.Join(w.root, at), Why: Dependencies})
		case e.IsDir():
			w.walk(at)
		case e.Type()&fs.ModeSymlink != 0:
			w.link(at)
		case !Manifest(at):
		case e.Type().IsRegular():
			w.found++
			w.file(Input{Path: filepath.Join(w.root, at), Rel: at, Root: w.root, target: filepath.Join(w.real, at)})
		default:
			w.found++
			w.pass(Passed{Path: filepath.Join(w.root, at), Why: Special})
		}
	}
}

// link reads the file behind a symbolic link.
func (w *walk) link(rel string) {
	path := filepath.Join(w.root, rel)
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		w.pass(Passed{Path: path, Why: LinkedDirectory})
		return
	case !Manifest(path):
		return
	}
	w.found++
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ELOOP):
		w.pass(Passed{Path: path, Why: Dangling})
	case err != nil:
		w.fail(path, err)
	case !info.Mode().IsRegular():
		w.pass(Passed{Path: path, Why: Special})
	default:
		target, err := absolute(path)
		if err != nil {
			w.fail(path, err)
			return
		}
		w.file(Input{Path: path, Rel: rel, Root: w.root, target: target, leaves: !below(w.real, target)})
	}
}

// below says whether path is in the directory dir or in one below it. Both are absolute and without links.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// dependencies says whether the directory at rel holds packages that a package manager has downloaded.
func (w *walk) dependencies(rel string) bool {
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(w.root, rel, name))
		return err == nil
	}
	switch filepath.Base(rel) {
	case "node_modules":
		return true
	case "vendor":
		return has("modules.txt") || has("autoload.php")
	}
	return false
}
