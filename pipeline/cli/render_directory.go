// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/review/dryrun"
)

// writeResults writes the available results into a directory, by the rules of a branch: a pipeline replaces and
// removes only files that it wrote itself, by its record in the directory, and nothing that a gate refuses.
func (l *localPipelines) writeResults(ctx context.Context, told io.Writer, all []dryrun.Result, name string) error {
	var results []dryrun.Result
	for _, r := range all {
		if r.Err == nil && r.Gate == nil {
			results = append(results, r)
		}
	}
	if err := checkNoOverlap(results); err != nil {
		return err
	}
	dir, err := files.OpenDirectory(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	records, err := publish.ReadRecords(dir.FS())
	if err != nil {
		return err
	}
	var changes []publish.Change
	var unrecorded []dryrun.Result
	content := map[string][]byte{}
	for _, r := range results {
		changes = append(changes, publish.Change{
			Pipeline: r.Entry.Key, Path: r.Path, Files: r.Files, Objects: r.Objects,
		})
		if !records.Known(r.Entry.Key) {
			unrecorded = append(unrecorded, r)
		}
		for file, text := range r.Files {
			content[path.Join(r.Path, file)] = text
		}
	}
	texts, stale, err := records.Replace(changes)
	if err != nil {
		return err
	}
	// Remove stale files before writing: a stale file may be the same as a new one, through a link or if names
	// differ only in case.
	if err := removeStale(told, dir, name, stale); err != nil {
		return err
	}
	if err := writeBelow(ctx, dir, content); err != nil {
		return err
	}
	// The records come last: after a run that was killed, the next one still knows what to remove.
	if err := writeBelow(ctx, dir, texts); err != nil {
		return err
	}
	l.printUnrecordedManifests(told, dir, name, records, unrecorded)
	return nil
}

// writeBelow writes files into a directory, by their paths in it.
func writeBelow(ctx context.Context, dir *files.Directory, content map[string][]byte) error {
	var outs []files.Output
	for _, name := range slices.Sorted(maps.Keys(content)) {
		out, err := dir.To(filepath.FromSlash(name), content[name])
		if err != nil {
			return err
		}
		outs = append(outs, out)
	}
	return files.Write(ctx, outs, nil)
}

// removeStale removes what pipelines have written earlier and do not write any more.
func removeStale(told io.Writer, dir *files.Directory, name string, stale []string) error {
	var removed []string
	for _, file := range stale {
		was, err := dir.Remove(filepath.FromSlash(file))
		if err != nil {
			return err
		}
		if was {
			removed = append(removed, filepath.Join(name, filepath.FromSlash(file)))
		}
	}
	if len(removed) > 0 {
		fmt.Fprintf(told, "info: removed %s from earlier renders: %s\n", countWithNoun(len(removed), "file"),
			strings.Join(removed, ", "))
	}
	return nil
}

// printUnrecordedManifests names the manifests below the paths of pipelines that had no record, as in a directory that
// an earlier version has written: they may be left of an earlier render, or be people's own.
func (l *localPipelines) printUnrecordedManifests(told io.Writer, dir *files.Directory, name string,
	records *publish.Records, unrecorded []dryrun.Result) {
	if len(unrecorded) == 0 {
		return
	}
	var there []string
	_ = fs.WalkDir(dir.FS(), ".", func(at string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && at != "." && strings.HasPrefix(e.Name(), ".") {
			return fs.SkipDir
		}
		if err == nil && !e.IsDir() && files.Manifest(at) {
			there = append(there, at)
		}
		return nil // what cannot be read is not named, and everything is written already
	})
	var others []string
	for _, e := range l.catalog.All() {
		if e.Err == nil && !records.Known(e.Key) {
			others = append(others, dryrun.PathOf(e.Pipeline))
		}
	}
	for _, r := range unrecorded {
		unknown := records.Unknown(r.Path, there, others)
		if len(unknown) == 0 {
			continue
		}
		for i, file := range unknown {
			unknown[i] = filepath.Join(name, filepath.FromSlash(file))
		}
		fmt.Fprintf(told, "warning: not in the result of %s, and not known to be left over from an earlier one: %s; remove files that are not your own\n",
			r.Entry.Key, strings.Join(unknown, ", "))
	}
}

// checkNoOverlap reports whether the results have no file in common, but for files that are the same: a directory has
// no branches, on which pipelines may well publish to one path.
func checkNoOverlap(results []dryrun.Result) error {
	type from struct {
		pipeline string
		content  []byte
	}
	seen := map[string]from{}
	for _, r := range results {
		for _, name := range slices.Sorted(maps.Keys(r.Files)) {
			at := path.Join(r.Path, name)
			other, ok := seen[at]
			if ok && !bytes.Equal(other.content, r.Files[name]) {
				return fmt.Errorf("writing the results: %s and %s both have %s; specify the pipelines of one branch, and write each branch to its own directory", other.pipeline, r.Entry.Key, at)
			}
			seen[at] = from{r.Entry.Key, r.Files[name]}
		}
	}
	return nil
}
