// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sergi/go-diff/diffmatchpatch"

	"github.com/prerig/prerig/fn/podmap"
)

// RecordName is the file, in the directory that is moved, that holds what steps have changed. Its name is none of a manifest.
const RecordName = ".prerig-ambient.undo"

// Record is what steps have changed, in their order.
type Record struct {
	Steps []RecordedStep `json:"steps"`
}

// RecordedStep is what one step has changed, by the path of the file below the directory.
type RecordedStep struct {
	Name  string            `json:"name"`
	Files map[string][]Hunk `json:"files"`
}

// Hunk is a run of lines that a step has replaced, with the unchanged lines around it. Lines have their ends.
type Hunk struct {
	// Line is that of the first of After, from 0.
	Line     int      `json:"line"`
	Before   []string `json:"before,omitempty"`
	After    []string `json:"after,omitempty"`
	Leading  []string `json:"leading,omitempty"`
	Trailing []string `json:"trailing,omitempty"`
}

// contextLines is the number of unchanged lines that are kept around a change.
const contextLines = 3

// ReadRecord reads a record. Nothing is one without steps.
func ReadRecord(data []byte) (*Record, error) {
	r := &Record{}
	if len(data) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("reading %s: %w", RecordName, err)
	}
	return r, nil
}

// Bytes returns the record as ReadRecord reads it.
func (r *Record) Bytes() ([]byte, error) {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", RecordName, err)
	}
	return append(data, '\n'), nil
}

// Add notes what a step has made of files.
func (r *Record) Add(step string, before, after map[string][]byte) {
	files := map[string][]Hunk{}
	for _, path := range podmap.SortedKeys(after) {
		if hunks := hunksOf(string(before[path]), string(after[path])); len(hunks) > 0 {
			files[path] = hunks
		}
	}
	if len(files) > 0 {
		r.Steps = append(r.Steps, RecordedStep{Name: step, Files: files})
	}
}

// Last returns the newest step; ok is false without one.
func (r *Record) Last() (step RecordedStep, ok bool) {
	if len(r.Steps) == 0 {
		return step, false
	}
	return r.Steps[len(r.Steps)-1], true
}

// Undo takes the newest step from the record, and back out of the files, which it changes.
func (r *Record) Undo(files map[string][]byte) error {
	step, ok := r.Last()
	if !ok {
		return nil
	}
	for _, path := range podmap.SortedKeys(step.Files) {
		lines := splitLines(string(files[path]))
		for _, h := range slices.Backward(step.Files[path]) {
			var err error
			if lines, err = h.revert(lines); err != nil {
				return fmt.Errorf("taking step %s back in %s: %w", step.Name, path, err)
			}
		}
		files[path] = []byte(strings.Join(lines, ""))
	}
	r.Steps = r.Steps[:len(r.Steps)-1]
	return nil
}

// revert replaces the lines after by those before, at the place that is nearest to the recorded one.
func (h Hunk) revert(lines []string) ([]string, error) {
	want := slices.Concat(h.Leading, h.After, h.Trailing)
	best := -1
	for i := 0; i+len(want) <= len(lines); i++ {
		if slices.Equal(lines[i:i+len(want)], want) && (best < 0 || distance(i+len(h.Leading), h.Line) < distance(best, h.Line)) {
			best = i + len(h.Leading)
		}
	}
	if best < 0 {
		return nil, fmt.Errorf("the lines that it wrote near line %d have changed since; revert the commit instead", h.Line+1)
	}
	return slices.Concat(lines[:best], h.Before, lines[best+len(h.After):]), nil
}

func distance(a, b int) int { return max(a-b, b-a) }

func splitLines(s string) []string {
	return slices.Collect(strings.Lines(s))
}

// hunksOf returns what has changed between two texts.
func hunksOf(before, after string) (out []Hunk) {
	if before == after {
		return nil
	}
	dmp := diffmatchpatch.New()
	dmp.DiffTimeout = 0
	a, b, lines := dmp.DiffLinesToRunes(before, after)
	line := 0
	var equal []string
	open := false
	for _, d := range dmp.DiffCharsToLines(dmp.DiffMainRunes(a, b, false), lines) {
		text := splitLines(d.Text)
		if d.Type == diffmatchpatch.DiffEqual {
			if open {
				out[len(out)-1].Trailing = text[:min(contextLines, len(text))]
			}
			open, equal = false, text
			line += len(text)
			continue
		}
		if !open {
			out = append(out, Hunk{Line: line, Leading: equal[max(0, len(equal)-contextLines):]})
			open = true
		}
		h := &out[len(out)-1]
		if d.Type == diffmatchpatch.DiffDelete {
			h.Before = append(h.Before, text...)
		} else {
			h.After = append(h.After, text...)
			line += len(text)
		}
	}
	return out
}
