// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package group

import (
	"encoding/binary"
	"slices"
	"sort"
	"strings"
)

// around is how many unchanged lines are shown on either side of changed ones.
const around = 3

// sharedRun is a run of changed lines that objects have in common.
type sharedRun struct {
	kind    string
	by      substitution // of the first object
	first   *changedRun
	base    int
	members []runMember
	index   map[string]int
	// before and after are the lines around it that all have.
	before, after []diffLine
	// gap reports whether before is all that separates the shared run above from this one, in all objects.
	above *sharedRun
	gap   bool
	// where and inPod are fields that hold it in all objects; the flags report whether these are exact in all.
	where, inPod       []string
	sameWhere, samePod bool
	// plain reports whether the lines and the field are identical in all objects without placeholders.
	plain bool
	text  string
}

// runMember is an object that has it.
type runMember struct {
	object Object
	by     substitution
}

// Changes combines the runs of all units and returns the changes.
func Changes(units []*Unit) []Change {
	counts := map[changeDigest]int{}
	for _, u := range units {
		for _, r := range u.runs {
			for _, c := range r.candidates {
				counts[c.id]++
			}
		}
	}
	found := map[changeDigest]*sharedRun{}
	var order []*sharedRun
	for _, u := range units {
		var above *sharedRun
		for _, r := range u.runs {
			// What most objects have; of equals, the one with the fewest placeholders, which comes first.
			key := r.candidates[0]
			for _, c := range r.candidates[1:] {
				if counts[c.id] > counts[key.id] {
					key = c
				}
			}
			if !r.follows {
				above = nil
			}
			s := found[key.id]
			if s == nil {
				s = newShared(u, r, key, above)
				found[key.id] = s
				order = append(order, s)
			} else {
				s.narrowContext(r, key, above)
			}
			s.addUnit(u, key)
			above = s
		}
	}
	return joinRuns(order)
}

func newShared(u *Unit, r *changedRun, key candidateDigest, above *sharedRun) *sharedRun {
	return &sharedRun{
		kind: u.Kind, by: key.by, first: r, base: indentOf(r.lines), index: map[string]int{}, before: r.before,
		after: r.after,
		above: above, gap: r.follows, where: r.where, inPod: r.inPod, sameWhere: true, samePod: r.pod, plain: true,
		text: textOf(r.lines, nil),
	}
}

// narrowContext narrows what is around to what one more run has too.
func (s *sharedRun) narrowContext(r *changedRun, key candidateDigest, above *sharedRun) {
	base := indentOf(r.lines)
	equal := func(a, b diffLine) bool {
		return dedentLine(s.by.replaceValues(a.text), s.base) == dedentLine(key.by.replaceValues(b.text), base)
	}
	n := 0
	for n < len(s.before) && n < len(r.before) && equal(s.before[len(s.before)-1-n], r.before[len(r.before)-1-n]) {
		n++
	}
	s.gap = s.gap && r.follows && s.above == above && n == len(s.before) && n == len(r.before)
	s.before = s.before[len(s.before)-n:]
	n = 0
	for n < len(s.after) && n < len(r.after) && equal(s.after[n], r.after[n]) {
		n++
	}
	s.after = s.after[:n]
	s.plain = s.plain && textOf(r.lines, nil) == s.text && pathText(r.where) == pathText(s.first.where)
	s.sameWhere = s.sameWhere && samePath(s.where, s.by, r.where, key.by)
	s.samePod = s.samePod && r.pod && samePath(s.inPod, s.by, r.inPod, key.by)
	at := 0
	for at < len(s.where) && at < len(r.where) && s.by.replaceValues(s.where[at]) == key.by.replaceValues(r.where[at]) {
		at++
	}
	s.where = s.where[:at]
}

func samePath(a []string, by substitution, b []string, with substitution) bool {
	return by.replaceValues(pathText(a)) == with.replaceValues(pathText(b))
}

func textOf(lines []diffLine, by substitution) string {
	var out strings.Builder
	for _, l := range lines {
		out.WriteByte(l.sign)
		out.WriteString(by.replaceValues(l.text))
		if !strings.HasSuffix(l.text, "\n") {
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// addUnit enters an object, or one more place of it.
func (s *sharedRun) addUnit(u *Unit, key candidateDigest) {
	id := u.Pipeline + "\x00" + u.Name
	i, ok := s.index[id]
	if !ok {
		i = len(s.members)
		s.index[id] = i
		s.members = append(s.members, runMember{Object{Pipeline: u.Pipeline, Name: u.Name}, key.by})
	}
	place := Place{Target: u.Target, Path: u.Path}
	if o := &s.members[i].object; !slices.Contains(o.Places, place) {
		o.Places = append(o.Places, place)
	}
}

// joinRuns puts those together that the same objects have at the same places.
func joinRuns(order []*sharedRun) []Change {
	byMembers := map[changeDigest]int{}
	var sets [][]*sharedRun
	numbers := map[string]uint32{}
	for _, s := range order {
		set := make([]byte, 0, 8*len(s.members))
		for _, m := range s.members {
			for _, place := range m.object.Places {
				id := m.object.Pipeline + "\x00" + m.object.Name + "\x00" + place.Target + "\x00" + place.Path
				n, ok := numbers[id]
				if !ok {
					n = uint32(len(numbers))
					numbers[id] = n
				}
				set = binary.BigEndian.AppendUint32(set, n)
			}
		}
		id := digestOf(s.kind, string(set))
		i, ok := byMembers[id]
		if !ok {
			i = len(sets)
			byMembers[id] = i
			sets = append(sets, nil)
		}
		sets[i] = append(sets[i], s)
	}
	out := []Change{}
	for _, set := range sets {
		out = append(out, changeOf(set))
	}
	sort.SliceStable(out, func(i, j int) bool { return len(out[i].Objects) > len(out[j].Objects) })
	return out
}

func changeOf(set []*sharedRun) Change {
	c := Change{Kind: set[0].kind, Hunks: writeHunks(set)}
	for _, m := range set[0].members {
		c.Objects = append(c.Objects, m.object)
	}
	for _, s := range set {
		if s.shownSubstitution(s.by) == nil {
			continue
		}
		for i, m := range s.members {
			for _, v := range m.by {
				if c.Objects[i].Values == nil {
					c.Objects[i].Values = map[string]string{}
				}
				c.Objects[i].Values[v.param] = v.value
			}
		}
	}
	return c
}

// shownSubstitution is the substitution that a reader sees: none where the lines are the same as they are.
func (s *sharedRun) shownSubstitution(by substitution) substitution {
	if s.plain {
		return nil
	}
	return by
}

// writeHunks writes runs with the lines around them. Those that have the same lines between them in all objects are
// one.
func writeHunks(set []*sharedRun) (out []Hunk) {
	for i := 0; i < len(set); {
		s := set[i]
		by := s.shownSubstitution(s.by)
		path, pod := s.fieldPath()
		text := textOf(lastLines(s.commonLines(s.before, true), around), by) + textOf(s.first.lines, by)
		for i++; i < len(set) && set[i].gap && set[i].above == s; i++ {
			s = set[i]
			by = s.shownSubstitution(s.by)
			text += textOf(s.before, by) + textOf(s.first.lines, by)
			more, in := s.fieldPath()
			if in != pod {
				more = nil
			}
			path = commonPath(path, more)
		}
		after := s.commonLines(s.after, false)
		text += textOf(after[:min(around, len(after))], by)
		h := Hunk{At: by.replaceValues(pathText(path)), Text: text}
		if pod && h.At != "" {
			h.At = "pod:" + h.At
		}
		out = append(out, h)
	}
	return out
}

func lastLines(lines []diffLine, n int) []diffLine { return lines[max(0, len(lines)-n):] }

// commonLines leaves out the lines around it that differ between the objects, where the changed ones are shown as they
// are.
func (s *sharedRun) commonLines(lines []diffLine, above bool) []diffLine {
	if !s.plain || len(s.by) == 0 || len(s.members) == 1 {
		return lines
	}
	for i := range lines {
		at := i
		if above {
			at = len(lines) - 1 - i
		}
		if s.by.replaceValues(lines[at].text) == lines[at].text {
			continue
		}
		if above {
			return lines[at+1:]
		}
		return lines[:at]
	}
	return lines
}

// fieldPath is the field that holds it, and whether it is one of the pod.
func (s *sharedRun) fieldPath() (path []string, pod bool) {
	if !s.sameWhere && s.samePod {
		return s.inPod, true
	}
	return s.where, false
}
