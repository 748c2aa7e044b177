// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"encoding/binary"
	"slices"
	"sort"
	"strings"
)

// around is how many unchanged lines are shown on either side of changed ones.
const around = 3

// shared is a run of changed lines that objects have in common.
type shared struct {
	kind    string
	by      substitution // of the first object
	first   *changedRun
	base    int
	members []member
	index   map[string]int
	// before and after are the lines around it that all have.
	before, after []line
	// gap says that before is all that there is between the shared run that is above it and this one, for all.
	above *shared
	gap   bool
	// where and inPod hold it in all objects; the flags say whether exactly there in all.
	where, inPod       []string
	sameWhere, samePod bool
	// plain says that the lines and the field are the same in all objects as they are.
	plain bool
	text  string
}

// member is an object that has it.
type member struct {
	object Object
	by     substitution
}

// group puts the runs of all units together and gives the changes.
func group(units []*unit) []Change {
	counts := map[digest]int{}
	for _, u := range units {
		for _, r := range u.runs {
			for _, c := range r.candidates {
				counts[c.id]++
			}
		}
	}
	found := map[digest]*shared{}
	var order []*shared
	for _, u := range units {
		var above *shared
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
				s.join(r, key, above)
			}
			s.add(u, key)
			above = s
		}
	}
	return changes(order)
}

func newShared(u *unit, r *changedRun, key candidate, above *shared) *shared {
	return &shared{
		kind: u.kind, by: key.by, first: r, base: indentOf(r.lines), index: map[string]int{}, before: r.before, after: r.after,
		above: above, gap: r.follows, where: r.where, inPod: r.inPod, sameWhere: true, samePod: r.pod, plain: true, text: textOf(r.lines, nil),
	}
}

// join narrows what is around to what one more run has too.
func (s *shared) join(r *changedRun, key candidate, above *shared) {
	base := indentOf(r.lines)
	equal := func(a, b line) bool {
		return dedent(s.by.apply(a.text), s.base) == dedent(key.by.apply(b.text), base)
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
	s.plain = s.plain && textOf(r.lines, nil) == s.text && written(r.where) == written(s.first.where)
	s.sameWhere = s.sameWhere && samePath(s.where, s.by, r.where, key.by)
	s.samePod = s.samePod && r.pod && samePath(s.inPod, s.by, r.inPod, key.by)
	at := 0
	for at < len(s.where) && at < len(r.where) && s.by.apply(s.where[at]) == key.by.apply(r.where[at]) {
		at++
	}
	s.where = s.where[:at]
}

func samePath(a []string, by substitution, b []string, with substitution) bool {
	return by.apply(written(a)) == with.apply(written(b))
}

func textOf(lines []line, by substitution) string {
	var out strings.Builder
	for _, l := range lines {
		out.WriteByte(l.sign)
		out.WriteString(by.apply(l.text))
		if !strings.HasSuffix(l.text, "\n") {
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// add enters an object, or one more place of it.
func (s *shared) add(u *unit, key candidate) {
	id := u.pipeline + "\x00" + u.name
	i, ok := s.index[id]
	if !ok {
		i = len(s.members)
		s.index[id] = i
		s.members = append(s.members, member{Object{Pipeline: u.pipeline, Name: u.name}, key.by})
	}
	place := Place{Target: u.target, Path: u.path}
	if o := &s.members[i].object; !slices.Contains(o.Places, place) {
		o.Places = append(o.Places, place)
	}
}

// changes puts those together that the same objects have at the same places.
func changes(order []*shared) []Change {
	byMembers := map[digest]int{}
	var sets [][]*shared
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

func changeOf(set []*shared) Change {
	c := Change{Kind: set[0].kind, Hunks: hunks(set)}
	for _, m := range set[0].members {
		c.Objects = append(c.Objects, m.object)
	}
	for _, s := range set {
		if s.shown(s.by) == nil {
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

// shown is the substitution that a reader sees: none where the lines are the same as they are.
func (s *shared) shown(by substitution) substitution {
	if s.plain {
		return nil
	}
	return by
}

// hunks writes runs with the lines around them. Those that have the same lines between them in all objects are one.
func hunks(set []*shared) (out []Hunk) {
	for i := 0; i < len(set); {
		s := set[i]
		by := s.shown(s.by)
		path, pod := s.field()
		text := textOf(last(s.clear(s.before, true), around), by) + textOf(s.first.lines, by)
		for i++; i < len(set) && set[i].gap && set[i].above == s; i++ {
			s = set[i]
			by = s.shown(s.by)
			text += textOf(s.before, by) + textOf(s.first.lines, by)
			more, in := s.field()
			if in != pod {
				more = nil
			}
			path = common(path, more)
		}
		after := s.clear(s.after, false)
		text += textOf(after[:min(around, len(after))], by)
		h := Hunk{At: by.apply(written(path)), Text: text}
		if pod && h.At != "" {
			h.At = "pod:" + h.At
		}
		out = append(out, h)
	}
	return out
}

func last(lines []line, n int) []line { return lines[max(0, len(lines)-n):] }

// clear leaves out the lines around it that differ between the objects, where the changed ones are shown as they are.
func (s *shared) clear(lines []line, above bool) []line {
	if !s.plain || len(s.by) == 0 || len(s.members) == 1 {
		return lines
	}
	for i := range lines {
		at := i
		if above {
			at = len(lines) - 1 - i
		}
		if s.by.apply(lines[at].text) == lines[at].text {
			continue
		}
		if above {
			return lines[at+1:]
		}
		return lines[:at]
	}
	return lines
}

// field is the field that holds it, and whether it is one of the pod.
func (s *shared) field() (path []string, pod bool) {
	if !s.sameWhere && s.samePod {
		return s.inPod, true
	}
	return s.where, false
}
