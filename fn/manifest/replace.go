// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// replaceNode writes a new value in the place of a node.
func (e *documentEditor) replaceNode(n *yamlNode, want any, pl nodePlace) error {
	for c := n.first; c != nil; c = c.next {
		e.recordLostAnchors(c)
	}
	start := n.start
	if n.tag != "" || n.kind == aliasKind { // a tag would change the meaning of the new value
		start = n.prop
		e.recordLostAnchors(n)
	}
	switch {
	case pl.flow || n.isFlow() && (n.n > 0 || e.flow.json || e.isOnOwnLine(n, start, pl)):
		e.replaceFlow(n, start, want, pl)
	case n.isCollection() && !n.isFlow():
		e.replaceBlock(n, want, pl)
	case isInline(want):
		e.replaceScalar(n, start, e.scalarLike(n, want, pl))
	default:
		e.openBlock(n, start, want, pl)
	}
	return nil
}

// replaceFlow writes flow style.
func (e *documentEditor) replaceFlow(n *yamlNode, start int, want any, pl nodePlace) {
	w, pad := e.flow.flowStyle(n)
	var t string
	if isInline(want) {
		t = flowScalar(n, want, w.json)
	} else {
		inLine := n.isCollection() && (n.n > 0 || e.isOnOwnLine(n, start, pl)) && e.sameLine(n.start, n.end)
		if inLine && !e.flow.json {
			w.unit = ""
		}
		t = w.flowText(want, pad)
	}
	if n.isAbsent() {
		t = " " + t
		if pl.key != nil && pl.key.colon < 0 {
			t = ":" + t
		}
	}
	e.replaceBytes(start, n.end, t)
}

// flowScalar writes a scalar of flow style in the style of the one that it replaces. A text that was plain and
// cannot stay plain gets single quotes, and loses them when it can be plain again: double quotes, which are more
// common, are the user's.
func flowScalar(n *yamlNode, want any, json bool) string {
	s, text := want.(string)
	switch {
	case json:
		return scalarText(want, true, doubleStyle)
	case text && n.style == plainStyle && n.val != "" && !plainSafe(s, true) && oneLine(s):
		return singleQuoted(s)
	case text && n.style == singleStyle && plainSafe(s, true) && !plainSafe(n.val, true):
		return s
	}
	return scalarText(want, true, keepQuotes(n.style))
}

// keepQuotes returns the style of a string that replaces one of style s.
func keepQuotes(s nodeStyle) nodeStyle {
	if s == singleStyle || s == doubleStyle {
		return s
	}
	return plainStyle
}

// scalarLike writes a scalar in the style of the one that it replaces.
func (e *documentEditor) scalarLike(n *yamlNode, want any, pl nodePlace) string {
	w := e.w
	s, text := want.(string)
	if !text || n.kind != scalarKind {
		return w.scalarText(want, max(pl.parent, 0))
	}
	if w.quote && (n.style == literalStyle || n.style == foldedStyle) {
		return quoteString(s, false, plainStyle) + e.headerComment(n)
	}
	if n.style == literalStyle || n.style == foldedStyle {
		col := n.indent
		if col <= pl.parent || strings.TrimSpace(n.val) == "" {
			col = max(pl.parent, 0) + w.step
		}
		header, lines, ok := literalBlock(s, col-max(pl.parent, 0))
		if ok && col-max(pl.parent, 0) < 10 && (!strings.Contains(header, "+") || strings.Contains(e.blockHeader(n), "+")) {
			return header + e.headerComment(n) + w.writeLines(lines, col)
		}
		if !strings.Contains(s, "\n") && s != "" && n.style == literalStyle && oneLine(s) && s[0] != ' ' {
			if h := e.blockHeader(n); h == "|-" {
				return h + e.headerComment(n) + w.writeLines([]string{s}, col)
			}
		}
		return quoteString(s, false, plainStyle) + e.headerComment(n)
	}
	if h, _, ok := literalBlock(s, w.step); ok && !strings.Contains(h, "+") && n.style != doubleStyle {
		return w.scalarText(want, max(pl.parent, 0))
	}
	quotes := keepQuotes(n.style)
	if quotes != plainStyle && quoteString(n.val, false, plainStyle) != n.val {
		if plain := quoteString(s, false, plainStyle); plain == s {
			return plain // the old text needed quotes, the new one does not
		}
	}
	return quoteString(s, false, quotes)
}

// replaceScalar puts text in the place of a scalar; the lines of a block scalar go after the line's comment.
func (e *documentEditor) replaceScalar(n *yamlNode, start int, text string) {
	head, body := text, ""
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		i -= len(e.nl) - 1
		head, body = text[:i], text[i:]
	}
	if n.isAbsent() {
		head = " " + head
		if n.prop < n.start && n.tag != "" {
			head = head[1:]
		}
	}
	end := n.end
	if body != "" && n.style != literalStyle && n.style != foldedStyle {
		e.replaceBytes(start, end, head)
		at := lineEnd(e.src, end)
		e.replaceBytes(at, at, body)
		return
	}
	e.replaceBytes(start, end, head+body)
}

// openBlock writes a block collection in the place of a scalar, an alias or an empty flow collection.
func (e *documentEditor) openBlock(n *yamlNode, start int, want any, pl nodePlace) {
	w := e.w
	w.b = strings.Builder{}
	_, list := want.([]any)
	col := max(pl.parent, 0) + w.step
	switch {
	case pl.dash >= 0:
		col = e.columnOf(pl.dash) + 2
	case pl.key == nil:
		col = max(e.col0, 0)
		if e.d.list == nil {
			col = 0
		}
	case list:
		col = pl.parent + w.seq
	}
	if e.inlineStart(n, start, pl) { // the first line replaces the old text
		w.writeCollection(want, col, true)
		lines := strings.TrimSuffix(w.b.String(), w.nl)
		head, body := lines, ""
		if i := strings.Index(lines, w.nl); i >= 0 {
			head, body = lines[:i], lines[i:]
		}
		if n.isAbsent() {
			head = " " + head
		}
		e.replaceBytes(start, n.end, head)
		at := lineEnd(e.src, n.end)
		e.replaceBytes(at, at, body)
		return
	}
	w.writeCollection(want, col, false)
	from, to, floor, next := start, n.end, e.valueFloor(n, pl), e.nextLine(n.end)
	for from > floor && (e.src[from-1] == ' ' || e.src[from-1] == '\t') {
		from--
	}
	if !e.sameLine(floor, start) { // the value is alone on a line of its own
		from, to = lineStart(e.src, start), next
	}
	e.replaceBytes(from, to, "")
	e.replaceBytes(next, next, w.b.String())
}

// inlineStart reports whether a block collection can start at the node's position: after a dash, or at the start of
// a document without a document start before it on its line.
func (e *documentEditor) inlineStart(n *yamlNode, start int, pl nodePlace) bool {
	if n.anchor != "" && start == n.start {
		return false
	}
	if pl.dash >= 0 {
		return e.sameLine(pl.dash, start)
	}
	return pl.key == nil && (e.d.list != nil || e.atLineStart(start) && !n.isAbsent())
}

// replaceBlock writes a value in the place of a block collection.
func (e *documentEditor) replaceBlock(n *yamlNode, want any, pl nodePlace) {
	floor := e.valueFloor(n, pl)
	own := pl.key != nil && !e.sameLine(floor, n.start) // the collection starts on a line of its own
	end := lineEnd(e.src, n.end)
	if isInline(want) {
		if pl.key == nil && pl.dash < 0 || !own && e.sameLine(floor, n.start) {
			e.replaceBytes(n.start, end, scalarOnly(want))
			return
		}
		text := " " + scalarOnly(want)
		if want == nil && own && pl.key.colon >= 0 {
			text = "" // the usual form of a key with an empty value
		}
		e.replaceBytes(floor, floor, text)
		e.replaceBytes(lineEnd(e.src, floor), end, "")
		return
	}
	w := e.w
	w.b = strings.Builder{}
	col := n.indent
	_, list := want.([]any)
	if own && (list != (n.kind == sequenceKind)) {
		col = pl.parent + w.step
		if list {
			col = pl.parent + w.seq
		}
	}
	inline := !e.atLineStart(n.start)
	w.writeCollection(want, col, inline)
	start := n.start
	if !inline {
		start = lineStart(e.src, n.start)
	}
	e.replaceBytes(start, end, strings.TrimSuffix(w.b.String(), w.nl))
}

func scalarOnly(v any) string { return scalarText(v, false, plainStyle) }
