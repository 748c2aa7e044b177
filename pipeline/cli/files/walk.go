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
	// excluded says that something was ignored, and exclude are the rules of the command line, which come last.
	excluded bool
	exclude  ruleSet
}

// directory reads the manifests below a directory.
func (r *reader) directory(root string) {
	real, err := absolute(root)
	if err != nil {
		r.fail(root, err)
		return
	}
	w := &walk{reader: r, root: root, real: real, exclude: ruleSet{base: real}}
	for _, pattern := range r.options.Exclude {
		if one, ok := parseRule(pattern); ok {
			w.exclude.rules = append(w.exclude.rules, one)
		}
	}
	failed := len(r.Errors)
	w.walk(".", w.above())
	if w.found == 0 && len(r.Errors) == failed && r.ctx.Err() == nil {
		but := ""
		if w.excluded {
			but = " but what is excluded"
		}
		r.Errors = append(r.Errors, fmt.Errorf("reading %s: the directory has no .yaml, .yml or .json file%s", root, but))
	}
}

// walk reads the directory at rel below the root. The ignore files are those of the directories around it.
func (w *walk) walk(rel string, around ignores) {
	entries, err := os.ReadDir(filepath.Join(w.root, rel))
	if err != nil {
		w.fail(filepath.Join(w.root, rel), err)
	}
	around = w.with(around, filepath.Join(w.real, rel))
	rules := append(around[:len(around):len(around)], w.exclude)
	for _, e := range entries {
		if w.ctx.Err() != nil {
			return
		}
		at := filepath.Join(rel, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
			w.leftover(filepath.Join(w.root, at))
		case rules.ignored(filepath.Join(w.real, at), e.IsDir()):
			w.excluded = true
		case e.IsDir() && w.dependencies(at):
			w.pass(Passed{Path: filepath.Join(w.root, at), Why: Dependencies})
		case e.IsDir():
			w.walk(at, around)
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

// below reports whether path is in the directory dir or in one below it. Both are absolute and without links.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// dependencies reports whether the directory at rel holds packages that a package manager has downloaded.
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
