// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// ErrWaiting is the cause of an error about a removal that must wait for a pipeline that replaces the removed one.
var ErrWaiting = errors.New("it goes on in the place of the removed pipeline and has not published there yet")

// readRecord reads what a pipeline owns on the branch, as this commit leaves it so far.
func (e *branchEdit) readRecord(pipeline string) (record ownershipRecord, ok bool, err error) {
	name := recordFile(pipeline)
	text, edited := e.files[name]
	if !edited {
		if text, ok, err = e.draft.Content(e.root, name); err != nil || !ok {
			return record, false, err
		}
	}
	if text == nil {
		return record, false, nil
	}
	if err := json.Unmarshal(text, &record); err != nil {
		return record, false, fmt.Errorf("reading %s of the branch: %w", name, err)
	}
	return record, true, nil
}

// predecessorFiles returns the files of removed pipelines that a change may take over, with their owners.
func (e *branchEdit) predecessorFiles(c Change) (map[string]string, error) {
	from := map[string]string{}
	for _, gone := range c.Predecessors {
		if gone == c.Pipeline {
			continue
		}
		record, _, err := e.readRecord(gone)
		if err != nil {
			return nil, err
		}
		for _, name := range record.Files {
			from[name] = gone
		}
	}
	return from, nil
}

// transferFiles removes the files that a change writes from the records of their previous owners. A record that is
// then empty is removed.
func (e *branchEdit) transferFiles(files map[string][]byte, from map[string]string) error {
	given := map[string]bool{}
	for name, gone := range from {
		if _, taken := files[name]; taken {
			given[gone] = true
		}
	}
	for gone := range given {
		record, ok, err := e.readRecord(gone)
		if err != nil || !ok {
			return err
		}
		record.Files = slices.DeleteFunc(record.Files, func(name string) bool {
			_, taken := files[name]
			if taken {
				e.dropOwner(name, gone)
			}
			return taken
		})
		if len(record.Files) == 0 {
			e.files[recordFile(gone)] = nil
			if err := e.removeStatement(gone); err != nil {
				return err
			}
			continue
		}
		text, err := record.marshalText()
		if err != nil {
			return err
		}
		e.files[recordFile(gone)] = text
	}
	return nil
}

// checkSuccessors refuses a removal that comes too early: those who go on in its place must have taken over what they
// want.
func (e *branchEdit) checkSuccessors(c Change) error {
	for pipeline, at := range c.Successors {
		record, ok, err := e.readRecord(pipeline)
		if err != nil {
			return err
		}
		if !ok || record.Path != at {
			return fmt.Errorf("waiting for pipeline %s: %w", pipeline, ErrWaiting)
		}
	}
	return nil
}

// filesOwnedByOthers returns those of the files that other pipelines own as well, because they adopted them. They are
// not this one's to delete.
func (e *branchEdit) filesOwnedByOthers(pipeline string, files []string) (map[string]bool, error) {
	out := map[string]bool{}
	if len(files) == 0 {
		return out, nil
	}
	if err := e.readOwners(); err != nil {
		return nil, err
	}
	for _, name := range files {
		if slices.ContainsFunc(e.owners[name], func(owner string) bool { return owner != pipeline }) {
			out[name] = true
		}
	}
	return out, nil
}

// sharesPath reports whether another pipeline has the same path.
func (e *branchEdit) sharesPath(c Change) (bool, error) {
	if err := e.readOwners(); err != nil {
		return false, err
	}
	for pipeline, at := range e.places {
		if pipeline != c.Pipeline && path.Clean(at) == path.Clean(c.Path) {
			return true, nil
		}
	}
	return false, nil
}

// ErrOfAnother is the cause of an error about a file that another pipeline has written. adopt does not take it
// over: both would keep rewriting it. A removed pipeline leaves its files to its successors; the record of an
// unknown pipeline is removed by hand.
var ErrOfAnother = errors.New("it belongs to that pipeline; choose another path, or if that pipeline was deleted, delete its record in " + recordDir + " on the branch")

// IsNotOwned reports whether an error is about a file that is not the pipeline's, regardless of its writer.
func IsNotOwned(err error) bool { return errors.Is(err, ErrNotOwned) || errors.Is(err, ErrOfAnother) }

// checkTakeover returns an error if a file that the pipeline did not write cannot become its own: adopt accepts
// files that no pipeline has written. A pipeline of another namespace is not named: its record on the branch is for
// those who may read that.
func (e *branchEdit) checkTakeover(name string, c Change) error {
	if err := e.readOwners(); err != nil {
		return err
	}
	if owners := e.owners[name]; len(owners) > 0 {
		who := "another pipeline"
		if path.Dir(owners[0]) == path.Dir(c.Pipeline) { // of one namespace
			who = "pipeline " + owners[0]
		}
		return fmt.Errorf("writing %s, which %s has written: %w", name, who, ErrOfAnother)
	}
	if !c.Adopt {
		return fmt.Errorf("writing %s: %w", name, ErrNotOwned)
	}
	return nil
}

// readOwners reads all records, as this commit leaves them so far. Later changes of it are kept up by pass and disown.
func (e *branchEdit) readOwners() error {
	if e.owners != nil {
		return nil
	}
	names, err := e.draft.List(e.root, recordDir)
	if err != nil {
		return err
	}
	texts := map[string][]byte{}
	for _, name := range names {
		if texts[recordDir+"/"+name], _, err = e.draft.Content(e.root, recordDir+"/"+name); err != nil {
			return err
		}
	}
	for name, text := range e.files {
		if strings.HasPrefix(name, recordDir+"/") {
			texts[name] = text
		}
	}
	e.owners, e.places = map[string][]string{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		var record ownershipRecord
		if json.Unmarshal(texts[name], &record) != nil {
			continue // it is not a record, or one that this commit removes
		}
		e.places[record.Pipeline] = record.Path
		for _, file := range record.Files {
			e.owners[file] = append(e.owners[file], record.Pipeline)
		}
	}
	return nil
}

// stageRecord notes who owns what after a change, where that was read.
func (e *branchEdit) stageRecord(c Change, before []string, now map[string][]byte) {
	if e.owners == nil {
		return
	}
	for _, name := range before {
		e.dropOwner(name, c.Pipeline)
	}
	for name := range now {
		e.dropOwner(name, c.Pipeline) // it may have been handed over before
		e.owners[name] = append(e.owners[name], c.Pipeline)
	}
	e.places[c.Pipeline] = c.Path
	if c.Remove {
		delete(e.places, c.Pipeline)
	}
}

func (e *branchEdit) dropOwner(name, pipeline string) {
	if e.owners != nil {
		e.owners[name] = slices.DeleteFunc(e.owners[name], func(owner string) bool { return owner == pipeline })
	}
}

// deletedObjects returns the objects that no longer exist. Both lists are sorted.
func deletedObjects(before, now []string) []string {
	var deleted []string
	for _, id := range before {
		if _, found := slices.BinarySearch(now, id); !found {
			deleted = append(deleted, id)
		}
	}
	return deleted
}
