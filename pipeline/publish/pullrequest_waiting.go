// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/source/git"
)

// waitingResults finds the results that wait on the head of a pull request.
type waitingResults struct {
	draft  *git.Draft
	branch string // the head's
	head   *headCommit
	base   git.Hash // root directory of the base
	adopt  bool
}

// byPipeline returns the waiting results on the head, by pipeline: those whose files or record differ
// from the base that it was made on. If that base no longer exists because its branch was recreated, the head is
// compared with the new one, for the pipelines that the commit names.
func (w waitingResults) byPipeline() (map[string]Change, error) {
	out := map[string]Change{}
	h := w.head
	if h == nil || !h.ours {
		return out, nil
	}
	below, named := h.root, map[string]bool(nil)
	if below.IsZero() {
		below, named = w.base, map[string]bool{}
		for _, line := range h.trailers {
			if name, ok := strings.CutPrefix(line, TrailerPipeline+": "); ok {
				named[name] = true
			}
		}
	}
	differs, err := w.draft.Changes(below, h.commit.Tree)
	if err != nil {
		return nil, fmt.Errorf("comparing %s with its base: %w", w.branch, err)
	}
	names, err := w.recordsOf(below, differs)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		c, pipeline, err := w.waitingChange(name, below, h.commit.Tree, differs)
		if err != nil {
			return nil, err
		}
		if c == nil || named != nil && !named[pipeline] {
			continue
		}
		moved, err := w.hasMoved(name, below, c)
		if err != nil {
			return nil, err
		}
		if !moved {
			out[pipeline] = *c
		}
	}
	w.letTakeOver(out, differs)
	return out, nil
}

// hasMoved reports whether a pipeline has moved to another path on the base since the head was made: the result
// waiting at the old one is older, and would remove the new one.
func (w waitingResults) hasMoved(name string, below git.Hash, c *Change) (bool, error) {
	now, ok, err := recordAt(w.draft, w.branch, w.base, name)
	if err != nil || !ok || c.Remove || path.Clean(now.Path) == path.Clean(c.Path) {
		return false, err
	}
	before, _, err := recordAt(w.draft, w.branch, below, name)
	return !reflect.DeepEqual(now, before), err
}

// letTakeOver lets waiting results keep files that they have taken over from removed pipelines, which still own
// them on the base.
func (w waitingResults) letTakeOver(waits map[string]Change, differs map[string]git.FileChange) {
	var given []string
	for name := range differs {
		if file, ok := strings.CutPrefix(name, recordDir+"/"); ok {
			if before, ok, err := recordAt(w.draft, w.branch, w.base, file); err == nil && ok {
				given = append(given, before.Pipeline)
			}
		}
	}
	slices.Sort(given)
	for name, c := range waits {
		c.Predecessors = given
		waits[name] = c
	}
}

// recordsOf returns the names of the records to look at: that of a pipeline whose files alone have changed is the same
// in both, so that all are looked at where the commit does not name all pipelines.
func (w waitingResults) recordsOf(below git.Hash, differs map[string]git.FileChange) ([]string, error) {
	names := map[string]bool{}
	for name := range differs {
		if file, ok := strings.CutPrefix(name, recordDir+"/"); ok {
			names[file] = true
		}
	}
	count := 0
	for _, line := range w.head.trailers {
		if pipeline, ok := strings.CutPrefix(line, TrailerPipeline+": "); ok {
			names[strings.TrimPrefix(recordFile(pipeline), recordDir+"/")] = true
			count++
		}
	}
	if count < maxNamed {
		return slices.Sorted(maps.Keys(names)), nil
	}
	for _, root := range []git.Hash{below, w.head.commit.Tree} {
		all, err := w.draft.List(root, recordDir)
		if err != nil {
			return nil, err
		}
		for _, name := range all {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// waitingChange returns the waiting change of the pipeline of a record, or nil if none exists.
func (w waitingResults) waitingChange(name string, below, head git.Hash,
	differs map[string]git.FileChange) (*Change, string, error) {
	now, has, err := recordAt(w.draft, w.branch, head, name)
	if err != nil {
		return nil, "", err
	}
	if !has {
		before, had, err := recordAt(w.draft, w.branch, below, name)
		if err != nil || !had {
			return nil, "", err
		}
		return &Change{Pipeline: before.Pipeline, Path: before.Path, Remove: true}, before.Pipeline, nil
	}
	_, waits := differs[recordDir+"/"+name]
	for _, file := range now.Files {
		_, differ := differs[file]
		waits = waits || differ
	}
	if !waits {
		return nil, now.Pipeline, nil
	}
	c := &Change{Pipeline: now.Pipeline, Path: now.Path, Files: map[string][]byte{}, identities: append([]string{}, now.Objects...), Adopt: w.adopt}
	if c.statement, _, err = w.draft.Content(head, StatementFile(now.Pipeline)); err != nil {
		return nil, "", err
	}
	for _, file := range now.Files {
		content, ok, err := w.draft.Content(head, file)
		if err != nil {
			return nil, "", err
		}
		if !ok {
			continue
		}
		at, err := relativePath(now.Path, file)
		if err != nil {
			return nil, "", err
		}
		c.Files[at] = content
	}
	return c, now.Pipeline, nil
}

// recordAt reads the record of a file name below a root directory of a branch.
func recordAt(draft *git.Draft, branch string, root git.Hash,
	name string) (record ownershipRecord, ok bool, err error) {
	text, ok, err := draft.Content(root, recordDir+"/"+name)
	if err != nil || !ok {
		return record, false, err
	}
	if err := json.Unmarshal(text, &record); err != nil {
		return record, false, fmt.Errorf("reading %s/%s of %s: %w", recordDir, name, branch, err)
	}
	return record, true, nil
}
