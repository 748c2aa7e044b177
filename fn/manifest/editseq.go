// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// editSequence edits a sequence that has elements into another that has some.
func (e *documentEditor) editSequence(n *yamlNode, want []any, pl nodePlace) error {
	old := n.sequenceElements()
	vals := make([]any, len(old))
	for i, o := range old {
		v, err := e.currentValue(o)
		if err != nil {
			v = goneValue{}
		}
		vals[i] = v
	}
	from := matchElements(vals, want)
	stay := longestRising(from)
	_, firstStays := stay[0]
	if len(stay) == 0 || !n.isFlow() && !e.atLineStart(old[0].colon) && !(firstStays && from[0] == 0) {
		return e.replaceNode(n, want, pl)
	}
	texts, err := e.elementTexts(n, old, want, from, stay)
	if err != nil {
		return err
	}
	if n.isFlow() {
		e.flow.flowElements(n, old, texts, stay)
		return nil
	}
	e.blockElements(n, old, texts, stay)
	return nil
}

// elementTexts edits the elements that stay in place and returns the texts of the others by their new position:
// elements that move keep their text, the rest is fresh. Positions in stay have no text.
func (e *documentEditor) elementTexts(n *yamlNode, old []*yamlNode, want []any, from []int, stay map[int]int) ([]string, error) {
	texts := make([]string, len(want))
	to := make(map[int]int, len(from))
	for j, i := range from {
		if i >= 0 {
			to[i] = j
		}
	}
	for i, o := range old { // in the order of the text, so that aliases see what became of their anchors
		pl := nodePlace{parent: n.indent, dash: o.colon, flow: n.isFlow()}
		j, matched := to[i]
		if _, in := stay[i]; in {
			if err := e.editNode(o, want[j], pl); err != nil {
				return nil, err
			}
			continue
		}
		if matched {
			t, err := e.movedText(n, old, i, want[j], pl)
			if err != nil {
				return nil, err
			}
			texts[j] = t
		}
		e.recordLostAnchors(o)
	}
	for j, i := range from {
		if i < 0 {
			texts[j] = e.newElementText(n, want[j])
		}
	}
	return texts, nil
}

// movedText returns the edited text of an element that moves: its lines in a block sequence, its span in a flow
// sequence.
func (e *documentEditor) movedText(n *yamlNode, old []*yamlNode, i int, want any, pl nodePlace) (string, error) {
	mine, err := e.editsOf(func() error { return e.editNode(old[i], want, pl) })
	if err != nil {
		return "", err
	}
	if n.isFlow() {
		return applyToText(e.src, mine, old[i].prop, old[i].end), nil
	}
	start, end := e.elementRegion(old, i, n.indent)
	t := applyToText(e.src, mine, start, end)
	if !strings.HasSuffix(t, "\n") {
		t += e.nl
	}
	return t, nil
}

// newElementText writes a new element.
func (e *documentEditor) newElementText(n *yamlNode, v any) string {
	if n.isFlow() {
		w, pad := e.flow.flowStyle(n)
		var b strings.Builder
		w.appendValue(&b, v, pad, true)
		return b.String()
	}
	w := e.w
	w.b = strings.Builder{}
	w.growForValue(v, n.indent)
	w.writeItem(v, n.indent, false)
	return w.b.String()
}
