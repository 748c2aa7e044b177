// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// carrier holds the elements that leave the lists of one mapping. Where an element of the same name comes into another list
// of the mapping it takes the text along, with its comments: a container that becomes an init container is still what the
// user wrote.
type carrier struct {
	e     *editor
	leave map[string]leaving
}

// leaving is an element that leaves a block sequence.
type leaving struct {
	in    *node
	elems []*node
	i     int
	value map[string]any
}

// carrying prepares the writer for the edit of a block mapping, and gives what ends that.
func (e *editor) carrying(pairs []pair, want map[string]any) (end func()) {
	before := e.w.carry
	if e.plain {
		return func() {}
	}
	c := &carrier{e: e, leave: map[string]leaving{}}
	for _, p := range pairs {
		key, ok := keyText(p.key)
		if ok && p.val.kind == sequenceKind && !p.val.flow() {
			c.collect(p.val, names(want[key]))
		}
	}
	if len(c.leave) > 0 {
		e.w.carry = c
	}
	return func() { e.w.carry = before }
}

// names gives the names of a list's elements.
func names(v any) map[string]bool {
	list, _ := v.([]any)
	out := make(map[string]bool, len(list))
	for _, el := range list {
		m, _ := el.(map[string]any)
		if name, ok := m["name"].(string); ok {
			out[name] = true
		}
	}
	return out
}

func (c *carrier) collect(list *node, stay map[string]bool) {
	elems := list.elems()
	for i, el := range elems {
		if el.kind != mappingKind || el.flow() {
			continue
		}
		v, err := c.e.value(el)
		m, _ := v.(map[string]any)
		if name, ok := m["name"].(string); err == nil && ok && !stay[name] && !anchored(el) {
			c.leave[name] = leaving{in: list, elems: elems, i: i, value: m}
		}
	}
}

// anchored reports whether a node holds an anchor or an alias.
func anchored(n *node) bool {
	found := false
	walk(n, func(c *node) { found = found || c.anchor != "" || c.kind == aliasKind })
	return found
}

// text gives the comments before an element and its text after the dash, for a list whose dashes are at col; false where
// nothing leaves that has its name and shares most keys with it, as an injected proxy does with what the user wrote of it.
func (c *carrier) text(v any, col int) (head, body string, ok bool) {
	m, _ := v.(map[string]any)
	name, _ := m["name"].(string)
	l, ok := c.leave[name]
	if !ok || name == "" {
		return "", "", false
	}
	shared := 0
	for k := range l.value {
		if _, ok := m[k]; ok {
			shared++
		}
	}
	if shared < 2 || 2*shared < min(len(l.value), len(m)) {
		return "", "", false
	}
	delete(c.leave, name)
	old := l.elems[l.i]
	saved, carry := c.e.edits, c.e.w.carry
	c.e.edits, c.e.w.carry = nil, nil
	err := c.e.node(old, m, place{parent: l.in.indent, dash: old.colon})
	mine := c.e.edits
	c.e.edits, c.e.w.carry = saved, carry
	if err != nil {
		return "", "", false
	}
	start, end := c.e.region(l.in, l.elems, l.i)
	head = c.e.src[start:lineStart(c.e.src, old.colon)]
	body = strings.TrimLeft(apply(c.e.src, mine, old.start, end), " ")
	return moveLines(head, col-l.in.indent), ensureBreak(moveLines(body, col+2-old.indent), c.e.w.nl), true
}

// moveLines shifts every line but the first of a text that starts inside one; a text of whole comment lines is shifted
// whole.
func moveLines(text string, by int) string {
	if by == 0 || text == "" {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		if i == 0 && l[0] != ' ' && l[0] != '#' || strings.TrimSpace(l) == "" {
			continue
		}
		if by > 0 {
			lines[i] = strings.Repeat(" ", by) + l
			continue
		}
		n := 0
		for n < -by && n < len(l) && l[n] == ' ' {
			n++
		}
		lines[i] = l[n:]
	}
	return strings.Join(lines, "")
}

func ensureBreak(s, nl string) string {
	if strings.HasSuffix(s, "\n") {
		return s
	}
	return s + nl
}
