// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package files finds and reads the manifests that a user names, and writes what became of them: all of them or none. It
// knows no YAML and never changes a byte.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/prerig/prerig/fn/strict"
)

// StdinName is how standard input is named in messages and diffs.
const StdinName = "stdin"

// MaxSize is the most bytes that are read of one file or of standard input.
const MaxSize = 256 << 20

// Input is one file as it was read.
type Input struct {
	// Path as the user would write it; StdinName for standard input.
	Path string
	// Rel is the path below the argument that named it: the base name for a file, the path in it for a directory.
	Rel string
	// Root is the directory among the arguments below which the file was found; empty for a file that was named itself.
	Root string
	// Data is the content.
	Data []byte

	target string      // the file behind symbolic links; empty for a stream
	info   fs.FileInfo // as it was when it was read
	leaves bool        // a link below Root leads to the file, which is not below Root
}

// Stdin reports whether the input is a stream: standard input, or what a shell hands over for <(command).
func (in Input) Stdin() bool { return in.target == "" }

// Leaves reports whether the file lies outside of the directory below which it was found, as a link leads to it, and
// where.
func (in Input) Leaves() (target string, ok bool) { return in.target, in.leaves }

// Names returns the number of names of the file in its file system; more than one if it has hard links.
func (in Input) Names() int {
	if in.info == nil {
		return 1
	}
	return linkCount(in.info)
}

// Why is the reason an entry of a directory was not read.
type Why int

// What is not read below a directory.
const (
	// Dangling is a link to what does not exist.
	Dangling Why = iota
	// Special is a named pipe, a device or a socket.
	Special
	// LinkedDirectory is a link to a directory. It is not followed, so that no loop and no way out of the tree can be
	// hidden in one.
	LinkedDirectory
	// Dependencies is a directory of downloaded packages: node_modules, and vendor of Go and of PHP's Composer.
	Dependencies
	// Results is the directory that Options leave out.
	Results
	// Large is a file of more than MaxSize bytes.
	Large
)

// Passed is what was not read.
type Passed struct {
	Path string
	Why  Why
	// Head is the beginning of a Large file.
	Head []byte
}

// Listing is what Read found beside the inputs.
type Listing struct {
	// Passed is what was not read, in the order in which it was found.
	Passed []Passed
	// Errors are the read errors; each is a *ReadError.
	Errors []error
	// Leftovers are temporary files that a run which was killed may have left behind; see Clean.
	Leftovers []string
}

// ReadError is the reason a file or a directory could not be read.
type ReadError struct {
	// Path is in the form that the user would write; empty if the user wrote none.
	Path string
	// Err is the cause, without the path.
	Err error
}

// Error is "reading PATH: cause".
func (e *ReadError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("reading a file: %v", e.Err)
	}
	return fmt.Sprintf("reading %s: %v", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }

// Options control how files are read.
type Options struct {
	// Stdin is what "-" and /dev/stdin mean.
	Stdin io.Reader
	// Exclude are patterns of what is not read below directories, written as lines of .gitignore and relative to the
	// directory that is named. They come after those of the ignore files.
	Exclude []string
	// Without is a directory that is skipped if it is below a named one, because results are written to it; "" for
	// none.
	Without string
	// Progress, which may be nil, hears of every file that was read.
	Progress func(done int, path string)
}

// Read passes every file that args name, and every manifest (.yaml, .yml, .json) below the directories that they
// name, to visit, in that order; below a directory in lexical order, without hidden files and directories and
// without those that .prerigignore files and Options exclude. "-" is standard input. A file that is named twice is
// read once. Only regular files are read, and streams that the shell opened (/dev/stdin, /dev/fd/N, and named pipes
// that are named themselves), from their beginning to their end and once.
//
// Files that cannot be read, and a directory without any manifest, are among the errors of the listing, and the
// rest is still read. The error is that of ctx, which ends the reading at once, even while a stream blocks.
func Read(ctx context.Context, args []string, o Options, visit func(Input)) (Listing, error) {
	r := fileReader{ctx: ctx, seen: map[string]bool{}, options: o, visit: visit}
	for _, arg := range args {
		if ctx.Err() != nil {
			break
		}
		r.readArgument(arg)
	}
	return r.Listing, ctx.Err()
}

type fileReader struct {
	Listing
	ctx     context.Context
	options Options
	visit   func(Input)
	seen    map[string]bool // by absolute path behind all links
	done    int             // files that were read
}

// addError notes that a path could not be read.
func (r *fileReader) addError(path string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		err = missingFileError(path)
	}
	r.Errors = append(r.Errors, &ReadError{Path: path, Err: innerError(err)})
}

// missingFileError describes a missing file, with a similar name beside it.
func missingFileError(path string) error {
	if strings.Contains(path, "://") {
		return fmt.Errorf("URLs are not read; pipe the file: curl -fsSL %s | prerig inject", path)
	}
	if strings.ContainsAny(path, "*?[") {
		return fmt.Errorf("no such file or directory; no file matches the pattern, or the shell did not expand it; name the directory: %s",
			filepath.Dir(path))
	}
	return fmt.Errorf("no such file or directory%s", strict.DidYouMean(filepath.Base(path), NamesBeside(path)))
}

// NamesBeside returns the names of the other files in the directory that a missing file should be in, to suggest one.
func NamesBeside(path string) []string {
	var names []string
	entries, _ := os.ReadDir(filepath.Dir(path)) // without the directory there is nothing to suggest
	for _, e := range entries {
		if e.Name() != filepath.Base(path) { // a link to nothing
			names = append(names, e.Name())
		}
	}
	return names
}

func (r *fileReader) readArgument(arg string) {
	descriptor, ok := streamDescriptor(arg)
	switch {
	case arg == "":
		r.Errors = append(r.Errors, &ReadError{Err: errors.New("its name is empty")})
		return
	case arg == "-", ok && descriptor == "0":
		r.standardInput()
		return
	case ok:
		r.readDescriptor(arg)
		return
	}
	info, err := os.Stat(arg)
	switch {
	case err != nil:
		r.addError(arg, err)
	case info.IsDir():
		r.readDirectory(arg)
	case info.Mode()&fs.ModeNamedPipe != 0: // some shells make one for <(command)
		target, err := resolvePath(arg)
		if err != nil {
			r.addError(arg, err)
			return
		}
		if !r.seen[target] {
			r.seen[target] = true
			r.readDescriptor(arg)
		}
	case !info.Mode().IsRegular():
		r.addError(arg, specialFileError(info.Mode()))
	default:
		target, err := resolvePath(arg)
		if err != nil {
			r.addError(arg, err)
			return
		}
		r.recordLeftoversOf(arg)
		r.readRegular(Input{Path: arg, Rel: filepath.Base(arg), target: target})
	}
}

// streamDescriptor reports whether a path names a file descriptor of the process, as shells write it for <(command),
// and which.
func streamDescriptor(arg string) (descriptor string, ok bool) {
	clean := filepath.ToSlash(filepath.Clean(arg))
	if clean == "/dev/stdin" {
		return "0", true
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if descriptor, ok := strings.CutPrefix(clean, dir); ok && descriptor != "" && strings.Trim(descriptor, "0123456789") == "" {
			return descriptor, true
		}
	}
	return "", false
}

// specialFileError describes the type of an irregular file.
func specialFileError(mode fs.FileMode) error {
	what := "not a file"
	switch {
	case mode&fs.ModeNamedPipe != 0: // it has taken the place of a file
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return fmt.Errorf("it is %s, and only regular files are read; pipe its content to standard input", what)
}

func (r *fileReader) standardInput() {
	if r.seen["-"] {
		return
	}
	r.seen["-"] = true
	data, err := r.readAll(r.options.Stdin)
	if err != nil {
		r.addError("standard input", err)
		return
	}
	r.visit(Input{Path: StdinName, Rel: StdinName, Data: data})
}

// readDescriptor reads what the shell opened, or a named pipe.
func (r *fileReader) readDescriptor(path string) {
	if r.seen[path] {
		return
	}
	r.seen[path] = true
	data, err := r.readAll(&lazyFile{path: path})
	if err != nil {
		r.addError(path, err)
		return
	}
	r.visit(Input{Path: path, Rel: filepath.Base(path), Data: data})
}

func (r *fileReader) addPassedFile(p Passed) { r.Passed = append(r.Passed, p) }

// Manifest reports whether the name is that of a manifest.
func Manifest(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// resolvePath returns the absolute path behind all links.
func resolvePath(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(target)
}

// innerError drops the operation and the path that the os package puts before the cause.
func innerError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
