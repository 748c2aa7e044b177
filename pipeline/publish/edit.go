// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/gitname"
)

// ownershipRecord is the record of a pipeline on a branch.
type ownershipRecord struct {
	Pipeline string   `json:"pipeline"`
	Path     string   `json:"path"`
	Files    []string `json:"files"`
	Objects  []string `json:"objects"`
}

// recordEnding is none that Flux or Argo CD would read as a manifest.
const recordEnding = ".record"

func recordFile(pipeline string) string {
	return recordDir + "/" + shortName(strings.ReplaceAll(pipeline, "/", "__"), recordEnding)
}

func (o ownershipRecord) marshalText() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(o)
	return out.Bytes(), err
}

// branchEdit collects what a commit changes, over all pipelines.
type branchEdit struct {
	draft *git.Draft
	root  git.Hash
	files map[string][]byte // paths on the branch, nil to remove
	taken map[string]string // paths to the pipeline that writes them in this commit
	dirs  map[string]string // directories to a pipeline that writes below them in this commit

	owners map[string][]string // files to who owns them as this commit leaves it so far; nil until that is asked for
	places map[string]string   // pipelines to their paths, known with owners

	attester *ArtifactSigner // of the statements about changes; nil makes none
}

func newEdit(draft *git.Draft, root git.Hash, attester *ArtifactSigner) *branchEdit {
	return &branchEdit{draft: draft, root: root, attester: attester, files: map[string][]byte{}, taken: map[string]string{}, dirs: map[string]string{}}
}

// fileHash returns the hash of a file in the current state of this commit, or the zero hash if the file does not
// exist.
func (e *branchEdit) fileHash(name string) (git.Hash, error) {
	if content, edited := e.files[name]; edited && content == nil {
		return git.Hash{}, nil
	}
	return e.draft.File(e.root, name)
}

// applyChange works out one change.
func (e *branchEdit) applyChange(c Change, extra map[string][]byte) Outcome {
	outcome := Outcome{Pipeline: c.Pipeline}
	files, before, err := e.wantedFiles(c)
	var from map[string]string
	if err == nil {
		from, err = e.predecessorFiles(c)
	}
	if err == nil {
		err = e.checkPaths(files, extra)
	}
	if err == nil {
		err = e.compareFiles(c, files, before, from, &outcome)
	}
	if err == nil && c.Gate != nil && !c.Remove {
		err = c.Gate(len(before.Objects), deletedObjects(before.Objects, objectIDs(c.Objects)))
	}
	if err != nil {
		return Outcome{Pipeline: c.Pipeline, Err: err}
	}
	if !outcome.Changed() {
		if outcome.Ownership, err = e.lacksStatement(c, files); err != nil {
			return Outcome{Pipeline: c.Pipeline, Err: err}
		}
	}
	if !outcome.Changed() {
		return outcome
	}
	if err := e.transferFiles(files, from); err != nil {
		return Outcome{Pipeline: c.Pipeline, Err: err}
	}
	if outcome = e.stageFiles(c, files, extra, outcome); outcome.Err == nil {
		e.stageRecord(c, before.Files, files)
	}
	return outcome
}

// wantedFiles returns the files by their paths on the branch, and what the pipeline owned before.
func (e *branchEdit) wantedFiles(c Change) (map[string][]byte, ownershipRecord, error) {
	before, _, err := e.readRecord(c.Pipeline)
	if err != nil {
		return nil, before, err
	}
	files := map[string][]byte{}
	if c.Remove {
		return files, before, nil
	}
	for name, content := range c.Files {
		at := path.Join(c.Path, name)
		if err := checkPath(at); err != nil {
			return nil, before, err
		}
		if content == nil {
			content = []byte{}
		}
		files[at] = content
	}
	return files, before, nil
}

// isMeta reports whether a path is one of Prerig's own files, including on case-insensitive file systems.
func isMeta(at string) bool {
	first, _, _ := strings.Cut(at, "/")
	return gitname.Key(first) == metaDir
}

// checkPath refuses to write what can be no file of a pipeline: what is outside, Prerig's own, and Git's.
func checkPath(at string) error {
	if !fs.ValidPath(at) || isMeta(at) {
		return fmt.Errorf("writing %+q: it is not a path of the pipeline", at)
	}
	if err := gitname.CheckPath(at); err != nil {
		return fmt.Errorf("writing %+q: it %w", at, err)
	}
	return nil
}

// checkPaths rejects a file at the path of a directory and vice versa, in this commit or on the branch.
func (e *branchEdit) checkPaths(files, extra map[string][]byte) error {
	dirs := map[string]bool{}
	for _, all := range []map[string][]byte{files, extra} {
		for name, content := range all {
			if content == nil {
				continue
			}
			if other, ok := e.dirs[name]; ok {
				return fmt.Errorf("writing %s: pipeline %s writes files below it", name, other)
			}
			for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
				dirs[dir] = true
				if e.files[dir] != nil {
					return fmt.Errorf("writing %s: another pipeline writes %s, which is a file", name, dir)
				}
			}
			if at, err := e.draft.Obstacle(e.root, name); err != nil || at != "" {
				return errors.Join(err, fmt.Errorf("writing %s: %s is in the way: %w", name, at, ErrNotOwned))
			}
		}
	}
	for dir := range dirs {
		if files[dir] != nil || extra[dir] != nil {
			return fmt.Errorf("writing %s: it would be a file and a directory", dir)
		}
	}
	return nil
}

// compareFiles finds what differs from the branch, and refuses what belongs to others.
func (e *branchEdit) compareFiles(c Change, files map[string][]byte, before ownershipRecord, from map[string]string,
	outcome *Outcome) error {
	mine := map[string]bool{}
	for _, name := range before.Files {
		mine[name] = true
	}
	for name, content := range files {
		if other, ok := e.taken[name]; ok {
			return fmt.Errorf("writing %s: pipeline %s writes it too", name, other)
		}
		now, err := e.fileHash(name)
		if err != nil {
			return err
		}
		_, inherits := from[name]
		outcome.Ownership = outcome.Ownership || inherits
		if inherits {
			mine[name] = true
		}
		if !mine[name] && !now.IsZero() {
			if err := e.checkTakeover(name, c); err != nil {
				return err
			}
		}
		switch {
		case now.IsZero():
			outcome.Added = append(outcome.Added, name)
		case now != git.BlobHash(content):
			outcome.Modified = append(outcome.Modified, name)
		}
	}
	if err := e.findDeletions(c, files, before, outcome); err != nil {
		return err
	}
	sort.Strings(outcome.Added)
	sort.Strings(outcome.Modified)
	sort.Strings(outcome.Deleted)
	return nil
}

// findDeletions finds what the pipeline owned and does not want any more.
func (e *branchEdit) findDeletions(c Change, files map[string][]byte, before ownershipRecord, outcome *Outcome) error {
	if c.Remove && before.Pipeline != "" {
		if err := e.checkSuccessors(c); err != nil {
			return err
		}
		outcome.Ownership = true
	}
	var unwanted []string
	for _, name := range before.Files {
		if _, stays := files[name]; stays {
			continue
		}
		now, err := e.fileHash(name)
		if err != nil {
			return err
		}
		if now.IsZero() {
			outcome.Ownership = true // the record must not claim paths that another pipeline may write to
			continue
		}
		unwanted = append(unwanted, name)
	}
	shared, err := e.filesOwnedByOthers(c.Pipeline, unwanted)
	for _, name := range unwanted {
		if shared[name] {
			outcome.Ownership = true
			continue
		}
		outcome.Deleted = append(outcome.Deleted, name)
	}
	return err
}

// stageFiles enters a change that differs from the branch. Extra files, by their paths on the branch, come with it.
func (e *branchEdit) stageFiles(c Change, files map[string][]byte, extra map[string][]byte, outcome Outcome) Outcome {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	record, err := ownershipRecord{Pipeline: c.Pipeline, Path: c.Path, Files: names,
		Objects: c.objectIDs()}.marshalText()
	if err != nil {
		return Outcome{Pipeline: c.Pipeline, Err: err}
	}
	keeps := false
	if c.Remove && len(extra) > 0 {
		if keeps, err = e.sharesPath(c); err != nil {
			return Outcome{Pipeline: c.Pipeline, Err: err}
		}
	}
	for _, name := range outcome.Deleted {
		e.files[name] = nil
	}
	for _, name := range slices.Concat(outcome.Added, outcome.Modified) {
		e.files[name] = files[name]
	}
	for name := range files {
		e.taken[name] = c.Pipeline
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			e.dirs[dir] = c.Pipeline
		}
	}
	for name, content := range extra {
		if content != nil || !keeps {
			e.files[name] = content
		}
	}
	if err := e.stageStatement(c, files); err != nil {
		return Outcome{Pipeline: c.Pipeline, Err: err}
	}
	e.files[recordFile(c.Pipeline)] = record
	if c.Remove {
		e.files[recordFile(c.Pipeline)] = nil
	}
	return outcome
}
