// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Limits on reading a repository. If one of them is exceeded, the whole commit is rejected, because the
// missing part would be arbitrary; a file that is too large is just one broken file.
const (
	maxFiles   = 20_000
	maxEntries = 200_000
	maxBytes   = 256 << 20
	maxRead    = 50_000 // documents
)

// treeReader reads the files of pipelines of one commit.
type treeReader struct {
	tree    *tree.Tree
	view    *tree.View
	entries int
	out     []Entry
}

// readTree reads every file below a directory, in the order of their names, as readDir does. Hidden files and directories
// are left out, and so are submodules and directories behind links.
func readTree(t *tree.Tree, dir string) ([]Entry, error) {
	dir = path.Clean(strings.Trim("/"+dir, "/"))
	r := &treeReader{tree: t, view: tree.NewView(t, tree.Limits{FileBytes: maxFile, TotalBytes: maxBytes, Files: maxFiles})}
	if info, err := r.view.Lookup(dir); err != nil || !info.Dir {
		return nil, fmt.Errorf("there is no directory %s in the repository", dir)
	}
	if err := r.readDirectory(dir); err != nil {
		return nil, fmt.Errorf("reading the directory %s of the repository: %w", dir, err)
	}
	return r.out, nil
}

func (r *treeReader) readDirectory(dir string) error {
	entries, err := r.tree.Entries(dir)
	if err != nil {
		return err
	}
	if r.entries += len(entries); r.entries > maxEntries {
		return &tree.LimitError{What: "number of files and directories", Limit: maxEntries}
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		switch {
		case strings.HasPrefix(e.Name, "."):
		case e.Mode == tree.Dir:
			err = r.readDirectory(name)
		case e.Mode != tree.Submodule && manifest.IsFileName(e.Name):
			err = r.readFile(name, e.Mode == tree.Link)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readFile reads one file. A file that is too large, and a link that is dangling or leads out of the repository, is
// an error of that file alone; any other read error fails the commit.
func (r *treeReader) readFile(name string, link bool) error {
	if link {
		info, err := r.view.Lookup(name)
		if err != nil {
			r.out = append(r.out, unreadableEntry(name, fmt.Errorf("reading %s: %w", name, err))...)
			return nil
		}
		if info.Dir {
			return nil
		}
	}
	data, err := r.view.Read(name)
	var over *tree.LimitError
	if errors.As(err, &over) && over.Limit == maxFile {
		r.out = append(r.out, unreadableEntry(name, fmt.Errorf("reading %s: the file has more than %d bytes", name, int64(maxFile)))...)
		return nil
	}
	if err != nil {
		return err
	}
	r.out = append(r.out, Parse(name, data, noRelativeDir)...)
	if len(r.out) > maxRead {
		return &tree.LimitError{What: "number of documents", Limit: maxRead}
	}
	return nil
}

// noRelativeDir refuses what would depend on where a process was started.
func noRelativeDir(p *v1alpha1.RenderPipeline) error {
	if field := relativeDir(p); field != "" {
		return &v1alpha1.FieldError{Path: field + ".dir.path",
			Message: "must be absolute, as the pipeline is read from Git; to render what is beside it, name the repository with " + field + ".git"}
	}
	return nil
}

// relativeDir returns the field of a pipeline's source that is relative to its file, or "" if none is.
func relativeDir(p *v1alpha1.RenderPipeline) string {
	if p == nil {
		return ""
	}
	for _, source := range p.AllSources() {
		if source.Dir != nil && !filepath.IsAbs(source.Dir.Path) {
			return source.Field
		}
	}
	return ""
}
