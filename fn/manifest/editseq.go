// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
)

// sequence edits a sequence that has elements into another that has some.
func (e *editor) sequence(n *node, want []any, pl place) error {
	old := n.elems()
	vals := make([]any, len(old))
	for i, o := range old {
		v, err := e.value(o)
		if err != nil {
			v = goneValue{}
		}
		vals[i] = v
	}
	from := match(vals, want)
	stay := longestRising(from)
	if len(stay) == 0 || !n.flow() && !e.atLineStart(old[0].colon) && !e.startsSame(from, stay) {
		return e.replace(n, want, pl)
	}
	texts, err := e.elementTexts(n, old, want, from, stay)
	if err != nil {
		return err
	}
	if n.flow() {
		e.flowElements(n, old, texts, stay)
		return nil
	}
	e.blockElements(n, old, texts, stay)
	return nil
}

// startsSame reports whether the first element stays the first.
func (e *editor) startsSame(from []int, stay map[int]int) bool {
	_, ok := stay[0]
	return ok && from[0] == 0
}

// elementTexts edits the elements that stay in place and gives the texts of the others by their new position: elements
// that move keep their text, the rest is fresh. Positions in stay have no text.
func (e *editor) elementTexts(n *node, old []*node, want []any, from []int, stay map[int]int) ([]string, error) {
	texts := make([]string, len(want))
	to := make(map[int]int, len(from))
	for j, i := range from {
		if i >= 0 {
			to[i] = j
		}
	}
	for i, o := range old { // in the order of the text, so that aliases see what became of their anchors
		pl := place{parent: n.indent, dash: o.colon, flow: n.flow()}
		j, matched := to[i]
		if _, in := stay[i]; in {
			if err := e.node(o, want[j], pl); err != nil {
				return nil, err
			}
			continue
		}
		if matched {
			t, err := e.moved(n, old, i, want[j], pl)
			if err != nil {
				return nil, err
			}
			texts[j] = t
		}
		e.lose(o)
	}
	for j, i := range from {
		if i < 0 {
			texts[j] = e.fresh(n, want[j])
		}
	}
	return texts, nil
}

// moved gives the edited text of an element that goes elsewhere: of block sequences its lines, of flow sequences its
// span.
func (e *editor) moved(n *node, old []*node, i int, want any, pl place) (string, error) {
	saved := e.edits
	e.edits = nil
	err := e.node(old[i], want, pl)
	mine := e.edits
	e.edits = saved
	if err != nil {
		return "", err
	}
	if n.flow() {
		return apply(e.src, mine, old[i].prop, old[i].end), nil
	}
	start, end := e.region(n, old, i)
	t := apply(e.src, mine, start, end)
	if !strings.HasSuffix(t, "\n") {
		t += e.w.nl
	}
	return t, nil
}

// region gives the lines of an element of a block sequence, with the comments that belong to it.
func (e *editor) region(n *node, old []*node, i int) (start, end int) {
	floor := -1
	if i > 0 {
		floor = old[i-1].end
	}
	return e.headStart(old[i].colon, floor), e.bodyEnd(old[i].end, n.indent+1)
}

// fresh writes a new element.
func (e *editor) fresh(n *node, v any) string {
	if n.flow() {
		w, pad := e.flowStyle(n)
		var b strings.Builder
		w.write(&b, v, pad, true)
		return b.String()
	}
	w := e.w
	w.b = strings.Builder{}
	w.item(v, n.indent, false)
	return w.b.String()
}

// blockElements takes elements out of a block sequence and puts others in.
func (e *editor) blockElements(n *node, old []*node, texts []string, stay map[int]int) {
	at := make(map[int]int, len(stay)) // new position to old
	for i, j := range stay {
		at[j] = i
	}
	firstOld := -1
	for i := range old {
		if _, in := stay[i]; in && firstOld < 0 {
			firstOld = i
		}
	}
	front, _ := e.region(n, old, firstOld)
	pos := front
	for j, t := range texts {
		if i, in := at[j]; in {
			pos = e.bodyEnd(old[i].end, n.indent+1)
			if i == len(old)-1 {
				pos = e.bodyEnd(old[i].end, n.indent)
			}
			continue
		}
		e.put(pos, pos, t)
	}
	for i := range old {
		if _, in := stay[i]; !in {
			start, end := e.region(n, old, i)
			e.put(start, end, "")
		}
	}
}
