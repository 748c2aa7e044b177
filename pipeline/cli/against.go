// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/batch"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/source/git"
	sourcetree "github.com/prerig/prerig/pipeline/source/tree"
)

// earlier is what --against names: the objects as the cluster has them.
type earlier struct {
	documents []render.GateDocument
	objects   []gate.Object
	docs      []*manifest.Document
}

// readAgainst reads the old state of the files that names lists: a file or directory, or otherwise these files in a
// revision of their repository.
func (g *checkRun) readAgainst(ctx context.Context, names []string) (*earlier, error) {
	if g.against == "" {
		return nil, nil
	}
	if _, err := os.Stat(g.against); err == nil {
		return g.readEarlier(ctx, []string{g.against}, func(text string) string { return text })
	}
	dir, err := os.MkdirTemp("", "prerig-against-")
	if err != nil {
		return nil, fmt.Errorf("reading --against: %w", err)
	}
	defer os.RemoveAll(dir)
	found, err := extractRevision(g.against, names, dir)
	if err != nil {
		return nil, fmt.Errorf("reading --against: %s is neither a file or directory nor a revision that can be read: %w", g.against, missingRevisionError(g.against, err))
	}
	if len(found) == 0 {
		return &earlier{docs: []*manifest.Document{}}, nil // all objects are new
	}
	return g.readEarlier(ctx, found, func(text string) string {
		return strings.ReplaceAll(text, dir+string(filepath.Separator), g.against+":")
	})
}

// readEarlier reads the objects of files and directories. show changes the names of files in messages.
func (g *checkRun) readEarlier(ctx context.Context, names []string, show func(string) string) (*earlier, error) {
	b, err := batch.Read(ctx, names, files.Options{Stdin: g.streams.In, Exclude: g.exclude})
	if err != nil {
		return nil, fmt.Errorf("reading --against: %s", show(err.Error()))
	}
	var errs []error
	for _, p := range b.Problems() {
		errs = append(errs, fmt.Errorf("reading --against: %s", show(p.Message)))
	}
	var input gateInput
	for _, item := range b.Items() {
		if err := input.addGateDocument(item.Doc, item.Doc, item.Path); err != nil {
			errs = append(errs, fmt.Errorf("reading --against: %s", show(err.Error())))
		}
	}
	out := &earlier{documents: input.documents, objects: input.objects, docs: []*manifest.Document{}}
	for _, item := range b.Items() {
		out.docs = append(out.docs, item.Doc)
	}
	return out, errors.Join(errs...)
}

// extractRevision writes files and directories as they are in a revision below a directory, by their paths in the
// repository, and returns those that the revision contains.
func extractRevision(revision string, names []string, dir string) (found []string, err error) {
	if len(names) == 0 {
		return nil, errors.New("a revision needs files to compare, and standard input is none")
	}
	for _, name := range names {
		if name == "-" {
			return nil, errors.New("a revision needs files to compare, and standard input is none")
		}
		at, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		if at, err = filepath.EvalSymlinks(at); err != nil {
			return nil, err
		}
		start := at
		if info, err := os.Stat(at); err == nil && !info.IsDir() {
			start = filepath.Dir(at)
		}
		repository, err := git.OpenLocal(start)
		if err != nil {
			return nil, err
		}
		root, err := repository.Root()
		if err != nil {
			return nil, err
		}
		inside, err := filepath.Rel(root, at)
		if err != nil {
			return nil, err
		}
		_, content, err := repository.Commit(revision)
		if err != nil {
			return nil, err
		}
		view := sourcetree.NewView(content, sourcetree.Limits{})
		inside = filepath.ToSlash(inside)
		if err := extractPath(view, inside, dir); errors.Is(err, fs.ErrNotExist) {
			continue // it is new
		} else if err != nil {
			return nil, err
		}
		found = append(found, filepath.Join(dir, filepath.FromSlash(inside)))
	}
	return found, nil
}

// extractPath writes the manifests at a path of a tree below a directory.
func extractPath(view sourcetree.Reader, name, dir string) error {
	info, err := view.Lookup(name)
	if err != nil {
		return err
	}
	if !info.Dir {
		return extractFile(view, name, dir)
	}
	if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(name)), 0o700); err != nil {
		return err
	}
	entries, err := view.List(name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		at, err := view.Lookup(e.Path)
		switch {
		case err != nil || at.Path != e.Path: // a link: what it leads to has its own place
		case e.Dir:
			err = extractPath(view, e.Path, dir)
			if err != nil {
				return err
			}
		case manifest.IsFileName(e.Path):
			if err := extractFile(view, e.Path, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func extractFile(view sourcetree.Reader, name, dir string) error {
	content, err := view.Read(name)
	if err != nil {
		return err
	}
	to := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}

// deletions reports the objects whose deletion also deletes other objects or data.
func deletions(gone []gate.Object, severities map[string]string) (out result.Results, err error) {
	levels, err := gate.NewSeverities(severities)
	if err != nil {
		return nil, err
	}
	severity := levels.Of(gate.CodeUpdateDeletes)
	for _, o := range gone {
		why := o.Identity().Destroys()
		if why == "" || severity == "" {
			continue
		}
		ref := o.Ref()
		out = append(out, result.Result{
			Severity: severity, ResourceRef: &ref, Tags: map[string]string{result.TagCode: gate.CodeUpdateDeletes},
			Message: "the object is deleted, " + why,
		})
	}
	return out, nil
}
