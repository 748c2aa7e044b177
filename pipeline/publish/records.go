// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// MetaDir is the directory of Prerig's own files, on a branch and in a directory that is laid out like one.
const MetaDir = metaDir

// Records maps the files of a directory to the pipelines that own them. They have the format of those on a branch,
// so that a directory that was written once is replaced by the same rules: a pipeline removes only what it wrote
// itself.
type Records struct{ byPipeline map[string]ownershipRecord }

// ReadRecords reads the records of a directory. An invalid record, such as one with conflict markers of a merge,
// assigns no files.
func ReadRecords(dir fs.FS) (*Records, error) {
	r := &Records{byPipeline: map[string]ownershipRecord{}}
	entries, err := fs.ReadDir(dir, recordDir)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the records of pipelines: %w", err)
	}
	for _, e := range entries {
		name := path.Join(recordDir, e.Name())
		if !e.Type().IsRegular() {
			continue
		}
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, fmt.Errorf("reading the records of pipelines: %w", err)
		}
		var record ownershipRecord
		if json.Unmarshal(text, &record) == nil && name == recordFile(record.Pipeline) {
			r.byPipeline[record.Pipeline] = record
		}
	}
	return r, nil
}

// Known reports whether a pipeline has a record.
func (r *Records) Known(pipeline string) bool {
	_, ok := r.byPipeline[pipeline]
	return ok
}

// Replace notes what pipelines write now. It returns their records as files, and the files that belonged to them and
// belong to no pipeline any more, sorted.
func (r *Records) Replace(changes []Change) (records map[string][]byte, stale []string, err error) {
	var before []string
	records = map[string][]byte{}
	for _, c := range changes {
		before = append(before, r.byPipeline[c.Pipeline].Files...)
		record := ownershipRecord{Pipeline: c.Pipeline, Path: c.Path, Files: []string{}, Objects: c.objectIDs()}
		for name := range c.Files {
			at := path.Join(c.Path, name)
			if err := checkPath(at); err != nil {
				return nil, nil, err
			}
			record.Files = append(record.Files, at)
		}
		slices.Sort(record.Files)
		r.byPipeline[c.Pipeline] = record
		if records[recordFile(c.Pipeline)], err = record.marshalText(); err != nil {
			return nil, nil, err
		}
	}
	owned := r.ownedFiles()
	for _, name := range before {
		if !owned[name] && checkPath(name) == nil {
			stale = append(stale, name)
		}
	}
	slices.Sort(stale)
	return records, slices.Compact(stale), nil
}

// Unknown returns those of the files that are below a pipeline's path and belong to no pipeline according to the
// records. others are the paths of pipelines without a record: files below these may be theirs.
func (r *Records) Unknown(at string, files, others []string) []string {
	owned := r.ownedFiles()
	var unknown []string
	for _, name := range files {
		theirs := slices.ContainsFunc(others, func(other string) bool { return (other == at || isInside(other, at)) && isInside(name, other) })
		if isInside(name, at) && !theirs && !owned[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// isInside reports whether a path is in a directory or in one below it.
func isInside(name, dir string) bool { return dir == "." || strings.HasPrefix(name, dir+"/") }

// ownedFiles returns the files that belong to pipelines.
func (r *Records) ownedFiles() map[string]bool {
	owned := map[string]bool{}
	for _, record := range r.byPipeline {
		for _, name := range record.Files {
			owned[name] = true
		}
	}
	return owned
}
