// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/review/danger"
	"github.com/prerig/prerig/pipeline/review/diff/group"
	"github.com/prerig/prerig/pipeline/review/pairing"
)

// objectNotes are what a reader has to know of objects beside their differences, by pipeline and path.
type objectNotes map[[2]string]*objectNote

// objectNote is about one object.
type objectNote struct {
	owner   string   // the unit that renders it
	stays   string   // why it stays in the cluster though it is no longer rendered
	dangers []string // what its change may break
	others  []string
}

func (n objectNotes) of(pipeline, path string) *objectNote {
	key := [2]string{pipeline, path}
	if n[key] == nil {
		n[key] = &objectNote{}
	}
	return n[key]
}

// stays returns why objects of a pipeline stay in the cluster, by their paths.
func (n objectNotes) stays(e *endPair) map[string]string {
	out := map[string]string{}
	for key, note := range n {
		if key[0] == e.key() && note.stays != "" {
			out[key[1]] = note.stays
		}
	}
	return out
}

// addUnits notes the owners of objects, and the dangers of their changes.
func (n objectNotes) addUnits(e *endPair, units []*group.Unit) {
	for _, u := range units {
		note := n.of(e.key(), u.Path)
		if unit := e.unitOf(u.Path, e.build.After[u.Path] != nil); unit != nil {
			note.owner = unit.Kind + " " + unit.Name
			if unit.Suspended {
				note.others = append(note.others, note.owner+" is suspended: nothing of this reaches the cluster until it is resumed")
			}
		}
		if u.Kind != group.Orphaned {
			note.dangers = danger.Of(decode(e.build.Before[u.Path]), decode(e.build.After[u.Path]))
		}
	}
}

// decode returns the object of a file, or nil.
func decode(text []byte) map[string]any {
	value, err := manifest.Decode(text)
	if len(text) == 0 || err != nil {
		return nil
	}
	object, _ := value.(map[string]any)
	return object
}

// shownUsers is how many users of a generated object are named.
const shownUsers = 5

// addRenames returns the files of the first end with the names that generated objects have at the second end, so that
// only their content differs, and notes what the new names have restarted.
func (n objectNotes) addRenames(e *endPair, renames []pairing.Rename, files map[string][]byte) map[string][]byte {
	shown := files
	for _, rename := range renames {
		if rename.Build != e.key() {
			continue
		}
		if len(shown) == len(files) && rename.From != rename.To {
			shown = maps.Clone(shown)
		}
		var users []string
		for _, path := range slices.Sorted(maps.Keys(shown)) {
			now := e.build.After[path]
			if !bytes.Contains(now, []byte(rename.To)) || !bytes.Contains(shown[path], []byte(rename.From)) {
				continue
			}
			shown[path] = bytes.ReplaceAll(shown[path], []byte(rename.From), []byte(rename.To))
			if path != rename.Path {
				users = append(users, result.RefTo(decode(now)).String())
			}
		}
		text := fmt.Sprintf("a new name with its content, %s in the place of %s", rename.To, rename.From)
		if len(users) > 0 {
			text += "; what uses it changes and restarts: " + foreign.List(users, shownUsers)
		}
		note := n.of(e.key(), rename.Path)
		note.others = append(note.others, text)
	}
	return shown
}

// withoutUnsure returns the files of the first end without the objects whose names differ, which the API server knows as
// others, and without those that two units have, of which the cluster has either.
func withoutUnsure(e *endPair, pairs pairing.Pairs) map[string][]byte {
	out := maps.Clone(e.build.Before)
	for _, rename := range pairs.Renames {
		if rename.Build == e.key() {
			delete(out, rename.Path)
		}
	}
	for _, s := range pairs.Shared {
		switch {
		case s.Gained && s.From == e.key():
			delete(out, s.FromPath)
		case !s.Gained && s.Build == e.key():
			delete(out, s.Path)
		}
	}
	return out
}

// annotate adds the notes to the objects of changes.
func (n objectNotes) annotate(changes []group.Change) {
	for i := range changes {
		for j := range changes[i].Objects {
			o := &changes[i].Objects[j]
			for _, place := range o.Places {
				note := n[[2]string{o.Pipeline, place.Path}]
				if note == nil {
					continue
				}
				o.Owner, o.Notes = note.owner, slices.Clone(note.others)
				if n.isNearest(changes, i, o.Pipeline, place.Path) {
					o.Dangers = note.dangers
				}
				if note.stays != "" {
					o.Notes = append(o.Notes, "no longer in Git, and stays in the cluster: "+note.stays)
				}
			}
		}
	}
}

// isNearest reports whether a change is the one of fewest objects among those that an object has: its dangers are shown once.
func (n objectNotes) isNearest(changes []group.Change, at int, pipeline, path string) bool {
	nearest := at
	for i, c := range changes {
		fewer := len(c.Objects) < len(changes[nearest].Objects) || len(c.Objects) == len(changes[nearest].Objects) && i < nearest
		if fewer && slices.ContainsFunc(c.Objects, func(o group.Object) bool {
			return o.Pipeline == pipeline && slices.ContainsFunc(o.Places, func(p group.Place) bool { return p.Path == path })
		}) {
			nearest = i
		}
	}
	return nearest == at
}

// Move is an object that another build or unit renders than before. In the cluster, nothing happens to it.
type Move struct {
	Object string `json:"object"`
	From   string `json:"from"`
	To     string `json:"to"`
}

// movesOf returns the moves between builds that exist at both ends, and between units.
func movesOf(moves []pairing.Move, all []*endPair) (out []Move) {
	ends := map[string]*endPair{}
	for _, e := range all {
		ends[e.key()] = e
	}
	place := func(build, path string, after bool) string {
		if unit := ends[build].unitOf(path, after); unit != nil {
			return unit.Kind + " " + unit.Name + " of " + build
		}
		return build
	}
	for _, m := range moves {
		one := Move{Object: result.ResourceRef{Kind: m.Object.Kind, Namespace: m.Object.Namespace, Name: m.Object.Name}.String(), From: place(m.From, m.FromPath, false), To: place(m.To, m.ToPath, true)}
		if one.From != one.To {
			out = append(out, one)
		}
	}
	return out
}
