// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// dirWalk walks one named directory.
type dirWalk struct {
	*fileReader
	root  string // as it was named
	real  string // behind all links, absolute
	found int    // manifests, read or not
	// excluded reports whether any file was ignored, and exclude are the rules of the command line, which come
	// last.
	excluded bool
	exclude  ruleSet
	without  fs.FileInfo // the directory that is skipped; nil for none
}

// readDirectory reads the manifests below a directory.
func (r *fileReader) readDirectory(root string) {
	real, err := resolvePath(root)
	if err != nil {
		r.addError(root, err)
		return
	}
	w := &dirWalk{fileReader: r, root: root, real: real, exclude: ruleSet{base: real}}
	for _, pattern := range r.options.Exclude {
		if one, ok := parseRule(pattern); ok {
			w.exclude.rules = append(w.exclude.rules, one)
		}
	}
	if r.options.Without != "" {
		w.without, _ = os.Stat(r.options.Without) // a missing one is not found either
	}
	failed := len(r.Errors)
	w.walkDirectory(".", w.ignoreFilesAbove())
	if w.found == 0 && len(r.Errors) == failed && r.ctx.Err() == nil {
		but := ""
		if w.excluded {
			but = " that is not excluded"
		}
		r.addError(root, errors.New("the directory has no .yaml, .yml or .json file"+but))
	}
}

// walkDirectory reads the directory at rel below the root. The ignore files are those of the directories around it.
func (w *dirWalk) walkDirectory(rel string, around ignoreFiles) {
	entries, err := os.ReadDir(filepath.Join(w.root, rel))
	if err != nil {
		w.addError(filepath.Join(w.root, rel), err)
	}
	around = w.addIgnoreFile(around, filepath.Join(w.real, rel))
	rules := append(around[:len(around):len(around)], w.exclude)
	for _, e := range entries {
		if w.ctx.Err() != nil {
			return
		}
		at := filepath.Join(rel, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
			w.recordLeftoverFile(filepath.Join(w.root, at))
		case rules.isIgnored(filepath.Join(w.real, at), e.IsDir()):
			w.excluded = true
		case e.IsDir() && w.holdsDependencies(at):
			w.addPassedFile(Passed{Path: filepath.Join(w.root, at), Why: Dependencies})
		case e.IsDir() && w.isLeftOut(at):
			w.addPassedFile(Passed{Path: filepath.Join(w.root, at), Why: Results})
		case e.IsDir():
			w.walkDirectory(at, around)
		case e.Type()&fs.ModeSymlink != 0:
			w.readLink(at)
		case !Manifest(at):
		case e.Type().IsRegular():
			w.found++
			w.readRegular(Input{Path: filepath.Join(w.root, at), Rel: at, Root: w.root, target: filepath.Join(w.real, at)})
		default:
			w.found++
			w.addPassedFile(Passed{Path: filepath.Join(w.root, at), Why: Special})
		}
	}
}

// readLink reads the file behind a symbolic link.
func (w *dirWalk) readLink(rel string) {
	path := filepath.Join(w.root, rel)
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		w.addPassedFile(Passed{Path: path, Why: LinkedDirectory})
		return
	case !Manifest(path):
		return
	}
	w.found++
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ELOOP):
		w.addPassedFile(Passed{Path: path, Why: Dangling})
	case err != nil:
		w.addError(path, err)
	case !info.Mode().IsRegular():
		w.addPassedFile(Passed{Path: path, Why: Special})
	default:
		target, err := resolvePath(path)
		if err != nil {
			w.addError(path, err)
			return
		}
		w.readRegular(Input{Path: path, Rel: rel, Root: w.root, target: target, leaves: !isBelow(w.real, target)})
	}
}

// isBelow reports whether path is in the directory dir or in one below it. Both are absolute and without links.
func isBelow(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// isLeftOut reports whether the directory at rel is the one that is not to be read.
func (w *dirWalk) isLeftOut(rel string) bool {
	if w.without == nil {
		return false
	}
	info, err := os.Lstat(filepath.Join(w.root, rel))
	return err == nil && os.SameFile(w.without, info)
}

// holdsDependencies reports whether the directory at rel holds packages that a package manager has downloaded.
func (w *dirWalk) holdsDependencies(rel string) bool {
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
