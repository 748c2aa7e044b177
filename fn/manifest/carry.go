// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// elementCarrier holds the elements that leave the lists of one mapping. If an element of the same name enters
// another list of the mapping, it keeps that text and its comments: a container that becomes an init container is
// still what the user wrote.
type elementCarrier struct {
	e     *documentEditor
	leave map[string]leavingElement
}

// leavingElement is an element that leaves a block sequence.
type leavingElement struct {
	in    *yamlNode
	elems []*yamlNode
	i     int
	value map[string]any
}

// carryElements prepares the writer for the edit of a block mapping and returns the function that ends it.
func (e *documentEditor) carryElements(pairs []keyValue, want map[string]any) (end func()) {
	before := e.w.carry
	if e.plain {
		return func() {}
	}
	c := &elementCarrier{e: e, leave: map[string]leavingElement{}}
	for _, p := range pairs {
		key, ok := keyText(p.key)
		if ok && p.val.kind == sequenceKind && !p.val.isFlow() {
			c.collectLeavingElements(p.val, elementNames(want[key]))
		}
	}
	if len(c.leave) > 0 {
		e.w.carry = c
	}
	return func() { e.w.carry = before }
}

// elementNames returns the names of a list's elements.
func elementNames(v any) map[string]bool {
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

func (c *elementCarrier) collectLeavingElements(list *yamlNode, stay map[string]bool) {
	elems := list.sequenceElements()
	for i, el := range elems {
		if el.kind != mappingKind || el.isFlow() {
			continue
		}
		v, err := c.e.currentValue(el)
		m, _ := v.(map[string]any)
		if name, ok := m["name"].(string); err == nil && ok && !stay[name] && !hasAnchorOrAlias(el) {
			c.leave[name] = leavingElement{in: list, elems: elems, i: i, value: m}
		}
	}
}

// hasAnchorOrAlias reports whether a node holds an anchor or an alias.
func hasAnchorOrAlias(n *yamlNode) bool {
	found := false
	walkNodes(n, func(c *yamlNode) { found = found || c.anchor != "" || c.kind == aliasKind })
	return found
}

// elementText returns the comments before an element and its text after the dash, for a list whose dashes are at
// col. It returns false unless an element that leaves has the same name and shares most keys, as an injected proxy
// does with the user's own.
func (c *elementCarrier) elementText(v any, col int) (head, body string, ok bool) {
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
	carry := c.e.w.carry
	c.e.w.carry = nil
	mine, err := c.e.editsOf(func() error {
		return c.e.editNode(old, m, nodePlace{parent: l.in.indent, dash: old.colon})
	})
	c.e.w.carry = carry
	if err != nil {
		return "", "", false
	}
	start, end := c.e.elementRegion(l.elems, l.i, l.in.indent)
	head = c.e.src[start:lineStart(c.e.src, old.colon)]
	body = strings.TrimLeft(applyToText(c.e.src, mine, old.start, end), " ")
	return moveLines(head, col-l.in.indent), ensureBreak(moveLines(body, col+2-old.indent), c.e.nl), true
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
