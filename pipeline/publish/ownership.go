// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ErrWaiting is the cause of an error about a removal that must wait for a pipeline that goes on in its place.
var ErrWaiting = errors.New("it goes on in the place of the removed pipeline and has not published there yet")

// record reads what a pipeline owns on the branch, as this commit leaves it so far.
func (e *edit) record(pipeline string) (record owned, ok bool, err error) {
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

// inherited gives the files of pipelines that are gone, which a change may take over, with who owned them.
func (e *edit) inherited(c Change) (map[string]string, error) {
	from := map[string]string{}
	for _, gone := range c.Takes {
		if gone == c.Pipeline {
			continue
		}
		record, _, err := e.record(gone)
		if err != nil {
			return nil, err
		}
		for _, name := range record.Files {
			from[name] = gone
		}
	}
	return from, nil
}

// handOver takes the files that a change writes out of the records of those who owned them. A record that is empty then is
// removed.
func (e *edit) handOver(files map[string][]byte, from map[string]string) error {
	given := map[string]bool{}
	for name, gone := range from {
		if _, taken := files[name]; taken {
			given[gone] = true
		}
	}
	for gone := range given {
		record, ok, err := e.record(gone)
		if err != nil || !ok {
			return err
		}
		record.Files = slices.DeleteFunc(record.Files, func(name string) bool { _, taken := files[name]; return taken })
		if len(record.Files) == 0 {
			e.files[recordFile(gone)] = nil
			continue
		}
		text, err := record.text()
		if err != nil {
			return err
		}
		e.files[recordFile(gone)] = text
	}
	return nil
}

// awaits says whether a removal comes too early: those who go on in its place must have taken over what they want.
func (e *edit) awaits(c Change) error {
	for pipeline, path := range c.After {
		record, ok, err := e.record(pipeline)
		if err != nil {
			return err
		}
		if !ok || record.Path != path {
			return fmt.Errorf("waiting for pipeline %s: %w", pipeline, ErrWaiting)
		}
	}
	return nil
}

// shared gives the files that other pipelines own as well, because they adopted them. They are not a removed pipeline's to
// delete.
func (e *edit) shared(c Change, before owned) (map[string]bool, error) {
	out := map[string]bool{}
	if !c.Remove || len(before.Files) == 0 {
		return out, nil
	}
	if e.owners == nil {
		if err := e.readOwners(); err != nil {
			return nil, err
		}
	}
	for _, name := range before.Files {
		if slices.ContainsFunc(e.owners[name], func(owner string) bool { return owner != c.Pipeline }) {
			out[name] = true
		}
	}
	return out, nil
}

// foreign is the error about a file that the pipeline did not write. It names who did, where that is another pipeline.
func (e *edit) foreign(name string) error {
	if e.owners == nil {
		if err := e.readOwners(); err != nil {
			return err
		}
	}
	if owners := e.owners[name]; len(owners) > 0 {
		return fmt.Errorf("writing %s, which pipeline %s has written: %w", name, owners[0], ErrNotOwned)
	}
	return fmt.Errorf("writing %s: %w", name, ErrNotOwned)
}

// readOwners reads all records of the branch.
func (e *edit) readOwners() error {
	e.owners = map[string][]string{}
	names, err := e.draft.List(e.root, recordDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		text, ok, err := e.draft.Content(e.root, recordDir+"/"+name)
		if err != nil {
			return err
		}
		var record owned
		if !ok || json.Unmarshal(text, &record) != nil {
			continue // it is not a record
		}
		for _, file := range record.Files {
			e.owners[file] = append(e.owners[file], record.Pipeline)
		}
	}
	return nil
}
