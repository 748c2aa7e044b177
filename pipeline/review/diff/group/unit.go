// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package group

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/review/diff"
	"github.com/prerig/prerig/pipeline/review/redact"
)

// The kinds of changes.
const (
	Added    = "added"
	Modified = "modified"
	Deleted  = "deleted"
	// Orphaned is that of an object that is no longer rendered, and that nothing deletes. Compare does not know them.
	Orphaned = "left in the cluster"
)

// Unit is one object that differs, or one file where files hold no objects.
type Unit struct {
	// Pipeline and Target are where it is. They are the caller's to set.
	Pipeline, Target string
	// Kind is Added, Modified, Deleted or Orphaned.
	Kind string
	// Path of the file, and Name of the object as in [Object].
	Path, Name string

	object   manifest.Meta
	old, now []byte
	runs     []*changedRun
}

// objectText is one document of a file.
type objectText struct {
	object manifest.Meta
	raw    []byte
}

// New returns a unit of one object that differs, nil on the side where it does not exist. If only is not nil, the
// changed lines are those that it accepts, "-" lines by their number in the old text and "+" lines by that in the
// new one; New returns nil without such lines.
func New(path string, object manifest.Meta, old, now []byte, only func(sign byte, number int) bool) *Unit {
	u := &Unit{Path: path, Name: object.Kind + " " + qualifiedName(object), Kind: kindOf(old != nil, now != nil),
		object: object, old: old, now: now}
	if u.findRuns(only); len(u.runs) == 0 {
		return nil
	}
	return u
}

// Compare finds the objects that differ between two sets of files, and counts those that do not.
func Compare(before, after map[string][]byte) (units []*Unit, same int) {
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, had := before[name]
		now, has := after[name]
		found, equal := compareFile(name, old, now, had, has)
		units, same = append(units, found...), same+equal
	}
	for _, u := range units {
		u.findRuns(nil)
	}
	return units, same
}

// compareFile splits a file into its objects. A file that cannot be split, or that differs between the objects, is
// compared as a whole.
func compareFile(name string, old, now []byte, had, has bool) (units []*Unit, same int) {
	if had && has && bytes.Equal(old, now) {
		pieces, _ := splitObjects(name, now)
		return nil, max(1, len(pieces))
	}
	before, readOld := splitObjects(name, old)
	after, readNow := splitObjects(name, now)
	whole := &Unit{Path: name, Name: name, Kind: kindOf(had, has), old: old, now: now}
	if had && !readOld || has && !readNow || len(before)+len(after) == 0 {
		return []*Unit{whole}, 0
	}
	type pair struct {
		object manifest.Meta // of the newer side
		texts  [2][]byte
	}
	ids := map[manifest.Meta]*pair{}
	var order []*pair
	for side, list := range [][]objectText{before, after} {
		for _, p := range list {
			id := versionless(p.object)
			if ids[id] == nil {
				ids[id] = &pair{}
				order = append(order, ids[id])
			}
			ids[id].object, ids[id].texts[side] = p.object, p.raw
		}
	}
	for _, p := range order {
		old, now := p.texts[0], p.texts[1]
		if old != nil && now != nil && bytes.Equal(old, now) {
			same++
			continue
		}
		units = append(units, &Unit{
			Path: name, Name: p.object.Kind + " " + qualifiedName(p.object), Kind: kindOf(old != nil, now != nil),
			object: p.object, old: old, now: now,
		})
	}
	if len(units) == 0 {
		return []*Unit{whole}, 0 // the same objects in another order, or with different text between them
	}
	return units, same
}

// versionless is the identity of an object whatever the version of its kind.
func versionless(object manifest.Meta) manifest.Meta {
	group, _, hasGroup := strings.Cut(object.APIVersion, "/")
	if !hasGroup {
		group = ""
	}
	object.APIVersion = group
	return object
}

func kindOf(had, has bool) string {
	switch {
	case !had:
		return Added
	case !has:
		return Deleted
	}
	return Modified
}

func qualifiedName(object manifest.Meta) string {
	if object.Namespace == "" {
		return object.Name
	}
	return object.Namespace + "/" + object.Name
}

// splitObjects returns the objects of a file. ok is false if a part of it is not an object, or an object occurs
// twice. An object whose name the API server completes has what it begins with, and an ellipsis.
func splitObjects(name string, text []byte) (out []objectText, ok bool) {
	file, err := manifest.Parse(name, text)
	if err != nil {
		return nil, false
	}
	seen := map[manifest.Meta]bool{}
	for _, doc := range file.Docs {
		if doc.Empty() {
			continue
		}
		meta, ok := doc.Peek()
		if meta.Name == "" {
			meta.Name = generatedName(doc)
		}
		id := versionless(meta)
		if !ok || meta.Name == "" || seen[id] {
			return nil, false
		}
		seen[id] = true
		raw := bytes.TrimPrefix(doc.Raw(), []byte("---\n"))
		out = append(out, objectText{meta, raw})
	}
	return out, true
}

// generatedName returns how the name of an object begins that the API server completes, with an ellipsis, or "".
func generatedName(doc *manifest.Document) string {
	value, err := doc.Object()
	if err != nil {
		return ""
	}
	metadata, _ := value["metadata"].(map[string]any)
	if begin, _ := metadata["generateName"].(string); begin != "" {
		return begin + "…"
	}
	return ""
}

// diffLine is one line of a difference. sign is "-", "+" or " ".
type diffLine struct {
	sign byte
	text string
	// number is the line number, in the old text for "-", otherwise in the new one.
	number int
}

// changedRun is a run of changed lines with the lines around it, at most three on each side.
type changedRun struct {
	lines         []diffLine
	before, after []diffLine
	// follows reports whether only the unchanged lines in before separate it from the previous run in the object.
	follows bool
	// candidates are ways to distinguish it from others; key is the chosen one.
	candidates []candidateDigest
	// where is the field that holds it, inPod the same below the pod template; pod reports whether it is in one.
	where, inPod []string
	pod          bool
}

// findRuns fills in the runs, those of the lines that are asked for.
func (u *Unit) findRuns(only func(sign byte, number int) bool) {
	old, now := redact.Pair(u.old, u.now)
	hunks := splitHunks(string(diff.Unified(u.Path, []diff.Chunk{{Old: old, New: now}})))
	for _, hunk := range hunks {
		u.runs = append(u.runs, runsOf(hunk, only)...)
	}
	if len(u.runs) == 0 && only == nil { // an empty file
		u.runs = []*changedRun{{}}
	}
	u.describeRuns()
}

// splitHunks splits a unified diff into its hunks.
func splitHunks(patch string) [][]diffLine {
	var out [][]diffLine
	old, now := 0, 0
	for text := range strings.Lines(patch) {
		if strings.HasPrefix(text, "@@ ") {
			fields := strings.Fields(text)
			old, now = spanStart(fields[1]), spanStart(fields[2])
			out = append(out, nil)
			continue
		}
		if len(out) == 0 {
			continue // the header
		}
		l := diffLine{sign: text[0], text: text[1:], number: now}
		switch l.sign {
		case '-':
			l.number = old
			old++
		case '+':
			now++
		case ' ':
			old++
			now++
		default: // "\ No newline at end of file" belongs to the line above
			last := &out[len(out)-1][len(out[len(out)-1])-1]
			last.text += text
			continue
		}
		out[len(out)-1] = append(out[len(out)-1], l)
	}
	return out
}

func spanStart(span string) int {
	first, _, _ := strings.Cut(strings.TrimLeft(span, "+-"), ",")
	n, _ := strconv.Atoi(first)
	return n
}

// runsOf splits a hunk at its unchanged lines, and at the changed ones that only excludes.
func runsOf(hunk []diffLine, only func(sign byte, number int) bool) (out []*changedRun) {
	var around []diffLine
	var open *changedRun
	apart := true // from the run before
	closeRun := func() {
		if len(out) > 0 && !apart {
			out[len(out)-1].after = around
		}
	}
	for _, l := range hunk {
		if l.sign == ' ' {
			around, open = append(around, l), nil
			continue
		}
		if only != nil && !only(l.sign, l.number) {
			closeRun()
			around, open, apart = nil, nil, true
			continue
		}
		if open == nil {
			closeRun()
			open = &changedRun{before: around, follows: !apart}
			out, around, apart = append(out, open), nil, false
		}
		open.lines = append(open.lines, l)
	}
	closeRun()
	return out
}
