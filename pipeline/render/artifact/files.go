// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Files are those of an artifact. They implement tree.Reader.
type Files struct {
	entries map[string]*entry // by path
	beside  tree.Reader
}

// entry is a file of a source, a file with a content of its own, or a directory.
type entry struct {
	dir     bool
	exec    bool
	from    tree.Reader
	path    string // in from
	content []byte // of a merged file
	names   []string
}

func newFiles(beside tree.Reader) *Files {
	return &Files{entries: map[string]*entry{".": {dir: true}}, beside: beside}
}

// Origin returns the file of a source that one of the artifact is a copy of, or "".
func (f *Files) Origin(name string) string {
	if e := f.entries[clean(name)]; e != nil && !e.dir {
		return e.path
	}
	return ""
}

// Origins returns the directories of the sources whose files are in a directory of the artifact, or below it.
func (f *Files) Origins(dir string) (out []string) {
	dir = clean(dir)
	for name, e := range f.entries {
		if !e.dir && (dir == "." || strings.HasPrefix(name, dir+"/")) {
			out = append(out, path.Dir(e.path))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Lookup implements tree.Reader.
func (f *Files) Lookup(name string) (tree.Info, error) {
	if f.isBeside(name) {
		return f.beside.Lookup(name)
	}
	at := clean(name)
	e, err := f.find(at)
	if err != nil {
		return tree.Info{}, err
	}
	return tree.Info{Path: at, Dir: e.dir, Exec: e.exec}, nil
}

// Read implements tree.Reader.
func (f *Files) Read(name string) ([]byte, error) {
	if f.isBeside(name) {
		return f.beside.Read(name)
	}
	e, err := f.find(clean(name))
	switch {
	case err != nil:
		return nil, err
	case e.dir:
		return nil, &fs.PathError{Op: "reading", Path: name, Err: fmt.Errorf("is a directory")}
	case e.from == nil:
		return e.content, nil
	}
	return e.from.Read(e.path)
}

// List implements tree.Reader.
func (f *Files) List(name string) (out []tree.Info, err error) {
	if f.isBeside(name) {
		return f.beside.List(name)
	}
	at := clean(name)
	e, err := f.find(at)
	if err != nil {
		return nil, err
	}
	if !e.dir {
		return nil, &fs.PathError{Op: "reading", Path: name, Err: fmt.Errorf("is not a directory")}
	}
	slices.Sort(e.names)
	for _, base := range e.names {
		below := path.Join(at, base)
		one := f.entries[below]
		out = append(out, tree.Info{Path: below, Dir: one.dir, Exec: one.exec})
	}
	return out, nil
}

func (f *Files) find(at string) (*entry, error) {
	if e := f.entries[at]; e != nil {
		return e, nil
	}
	return nil, &fs.PathError{Op: "reading", Path: at + " of the artifact", Err: fs.ErrNotExist}
}

// isBeside reports whether a path is that of a remote base.
func (f *Files) isBeside(name string) bool {
	return f.beside != nil && strings.HasPrefix(clean(name), render.BasePrefix)
}

// clean returns a path relative to the root, which .. does not leave.
func clean(name string) string {
	if name = strings.TrimPrefix(path.Clean("/"+name), "/"); name != "" {
		return name
	}
	return "."
}

// put adds a file, and the directories that it is in.
func (f *Files) put(at string, e *entry) error {
	if err := f.addDirectory(path.Dir(at)); err != nil {
		return err
	}
	known := f.entries[at]
	if known != nil && known.dir {
		return fmt.Errorf("%s is a file and a directory", at)
	}
	if known == nil {
		f.addName(at)
	}
	f.entries[at] = e
	return nil
}

func (f *Files) addDirectory(at string) error {
	known := f.entries[at]
	switch {
	case known != nil && known.dir:
		return nil
	case known != nil:
		return fmt.Errorf("%s is a file and a directory", at)
	}
	if err := f.addDirectory(path.Dir(at)); err != nil {
		return err
	}
	f.addName(at)
	f.entries[at] = &entry{dir: true}
	return nil
}

func (f *Files) addName(at string) {
	parent := f.entries[path.Dir(at)]
	parent.names = append(parent.names, path.Base(at))
}

// isDirectory reports whether there is a directory.
func (f *Files) isDirectory(at string) bool { return f.entries[at] != nil && f.entries[at].dir }
