// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// mirrorObjects reads a mirror as a tree.
type mirrorObjects struct{ m *Mirror }

// maxDirectory bounds the size of one directory's object.
const maxDirectory = 32 << 20

// Tree implements tree.Objects.
func (o *mirrorObjects) Tree(id string) ([]tree.Entry, error) {
	data, err := o.m.readObject(plumbing.TreeObject, plumbing.NewHash(id), maxDirectory)
	if err != nil {
		return nil, fmt.Errorf("reading Git tree %s: %w", id, err)
	}
	entries := make([]tree.Entry, 0, len(data)/40)
	err = eachEntry(data, func(mode filemode.FileMode, name string, hash Hash) {
		entry := tree.Entry{Name: name, ID: hash.String(), Mode: tree.File}
		switch mode {
		case filemode.Dir:
			entry.Mode = tree.Dir
		case filemode.Executable:
			entry.Mode = tree.Executable
		case filemode.Symlink:
			entry.Mode = tree.Link
		case filemode.Submodule:
			entry.Mode = tree.Submodule
		}
		entries = append(entries, entry)
	})
	if err != nil {
		return nil, fmt.Errorf("reading Git tree %s: %w", id, err)
	}
	return entries, nil
}

// eachEntry parses a tree object: mode, space, name, zero byte, 20 bytes of hash. Names that git itself would
// refuse to check out are an error.
func eachEntry(data []byte, f func(filemode.FileMode, string, Hash)) error {
	for len(data) > 0 {
		space := bytes.IndexByte(data, ' ')
		if space < 0 {
			return errors.New("malformed entry")
		}
		mode, err := filemode.New(string(data[:space]))
		if err != nil {
			return err
		}
		data = data[space+1:]
		zero := bytes.IndexByte(data, 0)
		if zero < 0 || len(data) < zero+21 {
			return errors.New("malformed entry")
		}
		name := string(data[:zero])
		if name == "" || name == "." || name == ".." || strings.EqualFold(name, ".git") || strings.ContainsAny(name, "/\\") {
			return fmt.Errorf("entry has the name %q, which Git does not allow", name)
		}
		var hash Hash
		copy(hash[:], data[zero+1:])
		f(mode, name, hash)
		data = data[zero+21:]
	}
	return nil
}

// Blob implements tree.Objects.
func (o *mirrorObjects) Blob(id string, max int64) ([]byte, error) {
	content, err := o.m.readObject(plumbing.BlobObject, plumbing.NewHash(id), max)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		// The server left it out, as it was asked to.
		return nil, &tree.LimitError{What: "size of the file in bytes", Limit: o.m.limits.FileBytes}
	}
	return content, err
}

// Commit is one commit, as far as the pipeline uses it.
type Commit struct {
	// Hash of the commit and of its root directory.
	Hash, Tree Hash
	// Parents are the commits that it comes after, the one of its own branch first.
	Parents []Hash
	// Ref is the full name of the reference that it was found by, "" where it was asked for by its hash.
	Ref string
	// Author and AuthorEmail wrote it.
	Author, AuthorEmail string
	// ByAuthor reports whether the author also committed it, at the same time: it was neither amended nor applied
	// from another source.
	ByAuthor bool
	// Date is when it was committed.
	Date time.Time
	// Subject is the first line of the message, Body the rest.
	Subject, Body string
}

// Revision is the commit as Flux writes it: main@sha1:…, v1@sha1:… or sha1:….
func (c *Commit) Revision() string {
	name := c.Ref
	for _, prefix := range []string{"refs/heads/", "refs/tags/"} {
		name = strings.TrimPrefix(name, prefix)
	}
	if name == "" {
		return "sha1:" + c.Hash.String()
	}
	return name + "@sha1:" + c.Hash.String()
}
