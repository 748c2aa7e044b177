// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/definitions"
)

// source is a product, and where its definitions are.
type source struct {
	Name string
	// From is a Go module, or the URL of a repository.
	From     string
	Licence  string
	Releases []string // versions of the module, tags, branches that begin with release-, or a commit of a catalogue
	Paths    []string // directories and files; empty for a catalogue
}

// read returns the definitions of a release.
func (s source) read(ctx context.Context, release string) ([]definitions.Definition, error) {
	readFiles := s.readModule
	if strings.HasPrefix(s.From, "https://") {
		readFiles = s.readRepository
	}
	files, err := readFiles(ctx, release)
	if err != nil {
		return nil, err
	}
	if s.isCatalogue() {
		served, err := servedByProducts()
		if err != nil {
			return nil, err
		}
		return readCatalogue(files, served)
	}
	var out []definitions.Definition
	for _, f := range files {
		found, err := reduce(f.name, f.text)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

type file struct {
	name string
	text []byte
}

func (s source) isCatalogue() bool { return len(s.Paths) == 0 }

// wants reports whether a file is one of the paths or directly in one of them.
func (s source) wants(name string) bool {
	if s.isCatalogue() {
		return isCataloguePath(name)
	}
	if extension := path.Ext(name); extension != ".yaml" && extension != ".yml" {
		return false
	}
	return slices.Contains(s.Paths, name) || slices.Contains(s.Paths, path.Dir(name))
}

// readModule downloads a release into a module cache of its own, and removes it again.
func (s source) readModule(ctx context.Context, release string) (out []file, err error) {
	cache, err := os.MkdirTemp("", "prerig-definitions-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cache)) }()
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", s.From+"@"+release)
	download.Dir = cache
	download.Env = append(os.Environ(), "GOFLAGS=-modcacherw", "GOMODCACHE="+filepath.Join(cache, "mod"))
	answer, failed := download.Output()
	var module struct{ Zip, Error string }
	if err := json.Unmarshal(answer, &module); err != nil {
		return nil, fmt.Errorf("downloading the module: %w", errors.Join(failed, err))
	}
	if module.Zip == "" { // for a module that asks for a newer Go it is set, and an error too
		return nil, fmt.Errorf("downloading the module: %s", module.Error)
	}
	archive, err := zip.OpenReader(module.Zip)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	prefix := s.From + "@" + release + "/"
	for _, f := range archive.File {
		name := strings.TrimPrefix(f.Name, prefix)
		if !s.wants(name) {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
		out = append(out, file{name, text})
	}
	return out, nil
}

// readRepository fetches the tag or the branch of a release of a repository.
func (s source) readRepository(ctx context.Context, release string) (out []file, err error) {
	dir, err := os.MkdirTemp("", "prerig-definitions-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	git := func(args ...string) ([]byte, error) {
		var stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
		cmd.Stderr = &stderr
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("running git %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
		}
		return text, nil
	}
	fetch := []string{"fetch", "-q", "--depth", "1", "origin", release}
	if !s.isCatalogue() {
		fetch = slices.Insert(fetch, 4, "--filter", "blob:none") // cat-file downloads what is read
	}
	for _, args := range [][]string{
		{"init", "-q", "--bare"}, {"remote", "add", "origin", s.From}, {"config", "remote.origin.promisor", "true"}, fetch,
	} {
		if _, err := git(args...); err != nil {
			return nil, err
		}
	}
	names, err := git("ls-tree", "-r", "--name-only", "-z", "FETCH_HEAD")
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		if !s.wants(name) {
			continue
		}
		text, err := git("cat-file", "blob", "FETCH_HEAD:"+name)
		if err != nil {
			return nil, err
		}
		out = append(out, file{name, text})
	}
	return out, nil
}
