// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package files finds and reads the manifests that a user names, and writes what became of them: all of them or none. It
// knows no YAML and never changes a byte.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// StdinName is how standard input is named in messages and diffs.
const StdinName = "stdin"

// Input is one file as it was read.
type Input struct {
	// Path as the user would write it; StdinName for standard input.
	Path string
	// Rel is the path below the argument that named it: the base name for a file, the path in it for a directory.
	Rel string
	// Data is the content.
	Data []byte

	target string      // the file behind symbolic links; empty for standard input
	info   fs.FileInfo // as it was when it was read
}

// Stdin says whether the input is standard input.
func (in Input) Stdin() bool { return in.target == "" }

// Read reads the files, and the manifests (.yaml, .yml, .json) below the directories, that args name, in that order;
// below a directory in lexical order, without hidden files and directories. "-" is standard input. A file that is named
// twice is read once.
//
// The error names every file that cannot be read, and every directory that has no manifest.
func Read(args []string, stdin io.Reader) ([]Input, error) {
	r := reader{seen: map[string]bool{}, stdin: stdin}
	for _, arg := range args {
		r.argument(arg)
	}
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	return r.inputs, nil
}

type reader struct {
	inputs []Input
	errs   []error
	seen   map[string]bool
	stdin  io.Reader
}

func (r *reader) fail(err error) { r.errs = append(r.errs, err) }

func (r *reader) argument(arg string) {
	if arg == "-" {
		r.standardInput()
		return
	}
	if arg == "" {
		r.fail(errors.New("reading a file: its name is empty"))
		return
	}
	info, err := os.Stat(arg)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.fail(fmt.Errorf("reading %s: no such file or directory", arg))
	case err != nil:
		r.fail(fmt.Errorf("reading %s: %w", arg, cause(err)))
	case info.IsDir():
		r.directory(arg)
	default:
		r.file(arg, filepath.Base(arg))
	}
}

func (r *reader) standardInput() {
	if r.seen["-"] {
		return
	}
	r.seen["-"] = true
	data, err := io.ReadAll(r.stdin)
	if err != nil {
		r.fail(fmt.Errorf("reading standard input: %w", err))
		return
	}
	r.inputs = append(r.inputs, Input{Path: StdinName, Rel: StdinName, Data: data})
}

func (r *reader) directory(root string) {
	found := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			r.fail(fmt.Errorf("reading %s: %w", path, cause(err)))
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if path != root && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() || !Manifest(path) {
			return nil
		}
		// A link to a directory is not followed, so that no loop and no way out of the tree can be hidden in one.
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		found++
		r.file(path, rel)
		return nil
	})
	if err != nil {
		r.fail(fmt.Errorf("reading %s: %w", root, err))
	}
	if found == 0 && err == nil {
		r.fail(fmt.Errorf("reading %s: the directory has no .yaml, .yml or .json file", root))
	}
}

// Manifest says whether the name is that of a manifest.
func Manifest(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

func (r *reader) file(path, rel string) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		r.fail(fmt.Errorf("reading %s: %w", path, cause(err)))
		return
	}
	key, err := filepath.Abs(target)
	if err != nil {
		r.fail(fmt.Errorf("reading %s: %w", path, err))
		return
	}
	if r.seen[key] {
		return
	}
	r.seen[key] = true
	f, err := os.Open(target)
	if err != nil {
		r.fail(fmt.Errorf("reading %s: %w", path, cause(err)))
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		var data []byte
		if data, err = io.ReadAll(f); err == nil {
			r.inputs = append(r.inputs, Input{Path: path, Rel: rel, Data: data, target: target, info: info})
			return
		}
	}
	r.fail(fmt.Errorf("reading %s: %w", path, cause(err)))
}

// cause drops the operation and the path that the os package puts before the cause.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
