// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/publish/published"
)

// readTimeout bounds the reading of one place.
const readTimeout = 2 * time.Minute

// readPublished returns what a place holds of the pipeline now, by paths relative to the pipeline's own. wanted are the
// files that it would get.
func (p *Renderer) readPublished(ctx context.Context, r *Result, to v1alpha1.Publish,
	wanted map[string][]byte) (held publish.Holding, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if p.Published != nil {
		return p.Published(ctx, r.Entry, to)
	}
	targets := publish.Readers(p.Fetcher, p.Secrets, p.branches.Get)
	targets.Artifacts = p.Artifacts
	target, err := targets.Open(ctx, r.Entry.Pipeline.Metadata.Namespace, to)
	if err == nil {
		held, err = target.Current(ctx, r.Entry.Key, wanted)
	}
	if err != nil {
		return held, fmt.Errorf("reading what is published: %w", err)
	}
	return held, nil
}

// keepPublished makes Jobs and bare Pods keep their published state, as in a run. Unreadable ones are not kept; the
// comparison with them reports why.
func (p *Renderer) keepPublished(ctx context.Context, r *Result) error {
	if !published.Concerns(r.Built.Response) {
		return nil
	}
	files := map[string][]byte{}
	switch {
	case p.Before != nil:
		files = p.Before(r.Entry)
	case p.Results != "":
		held, err := readDirectory(filepath.Join(p.Results, filepath.FromSlash(PathOf(r.Entry.Pipeline))))
		if err != nil {
			return err
		}
		files = held
	case !r.compares:
		return nil
	default:
		for i, to := range r.Entry.Pipeline.Spec.Publish {
			held, err := p.readPublished(ctx, r, to, nil)
			if err != nil {
				r.Built.Warnings = append(r.Built.Warnings, "Jobs and bare Pods are injected again: "+err.Error())
				continue
			}
			for name, content := range held.Files {
				files[strconv.Itoa(i)+"/"+name] = content
			}
		}
	}
	return published.Keep(ctx, r.Built.Response, files)
}

// isOutsidePipelinePath reports whether a path relative to that of the pipeline is one that the pipeline leaves.
func isOutsidePipelinePath(name string) bool { return strings.HasPrefix(name, "../") }

// readDirectory reads all files below a directory, but Prerig's own; one that does not exist has none.
func readDirectory(dir string) (map[string][]byte, error) {
	out := map[string][]byte{}
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return out, nil
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == publish.MetaDir {
			return fs.SkipDir
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)] = content
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading what is published: %w", err)
	}
	return out, nil
}
