// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"

	"github.com/prerig/prerig/fn/result"
)

// Bytes returns the list's text with these items and results. Items that came from this list keep their bytes, or
// those that With produced; items that are missing are removed; further documents are appended, written fresh. The
// results replace those of the list; without results the list has no results field. The list's own items must be in
// their original order.
func (rl *ResourceList) Bytes(items []*Document, results result.Results) []byte {
	own, extra := rl.sortItems(items)
	next, lay, ok := rl.withAnchors(own)
	if !ok {
		next, lay = spliceItems(rl.doc, rl.lay, own)
	}
	values := make([]any, 0, len(extra))
	for _, d := range extra {
		v, err := d.decodeAny()
		if err != nil { // no reader accepts this text: pass it on unchanged, so that the next reader rejects it
			v = d.text
		}
		values = append(values, v)
	}
	if !lay.block {
		return editList(next, values, results, len(rl.Results) == 0)
	}
	text := next.text
	text = putResults(text, lay, results, len(rl.Results) == 0)
	return []byte(putItems(text, lay, values))
}

// sortItems finds the list's own items by position, nil for those that are missing, and the others.
func (rl *ResourceList) sortItems(items []*Document) (own, extra []*Document) {
	own = make([]*Document, len(rl.Items))
	for _, d := range items {
		if d.list == rl.doc && d.index < len(own) && own[d.index] == nil {
			own[d.index] = d
		} else {
			extra = append(extra, d)
		}
	}
	return own, extra
}

// withAnchors returns the list edited as a whole where an edited item holds an anchor that others may use.
func (rl *ResourceList) withAnchors(own []*Document) (*Document, *listLayout, bool) {
	anchored := false
	for i, d := range own {
		if d == nil {
			return nil, nil, false
		}
		anchored = anchored || d.text != rl.Items[i].text && rl.Items[i].hasAnchors()
	}
	if !anchored {
		return nil, nil, false
	}
	next, err := rl.doc.WithItems(own)
	if err != nil {
		return nil, nil, false
	}
	lay, err := next.findLayout()
	return next, lay, err == nil && lay != nil
}

// spliceItems writes the texts of items back into a list and removes those that are nil. It returns the list and
// the new positions of its parts.
func spliceItems(d *Document, lay *listLayout, own []*Document) (*Document, *listLayout) {
	var b strings.Builder
	b.Grow(len(d.text) + len(d.text)/4)
	at, changed, missing := 0, false, false
	moved := *lay
	moved.items = nil
	for i, s := range lay.items {
		it := own[i]
		switch {
		case it == nil:
			missing = true
			if lay.block {
				b.WriteString(d.text[at:s.line])
				at = s.end
			}
		case it.text != d.text[s.start:s.end]:
			changed = true
			b.WriteString(d.text[at:s.start])
			b.WriteString(it.text)
			at = s.end
		}
	}
	if !changed && !missing {
		return d, lay
	}
	b.WriteString(d.text[at:])
	next := *d
	next.text = b.String()
	if lay.block {
		if len(lay.items) > 0 && allNil(own) {
			key := d.text[lay.keys["items"].line:lay.keys["items"].start]
			next.text = strings.Replace(next.text, key, key+" []", 1)
		}
		if l := next.scanLayout(); l != nil {
			return &next, l
		}
	}
	l, err := parseLayout(&next)
	if err != nil || l == nil {
		return &next, &moved
	}
	if missing && !l.block {
		next.text = dropElements(&next, own)
		if l, err = parseLayout(&next); err != nil || l == nil {
			return &next, &moved
		}
	}
	return &next, l
}

func allNil(ds []*Document) bool {
	for _, d := range ds {
		if d != nil {
			return false
		}
	}
	return true
}

// dropElements removes the elements that are nil in own from the items of a list in flow style.
func dropElements(d *Document, own []*Document) string {
	root, err := d.parseNodes()
	if err != nil {
		return d.text
	}
	items, _ := childNode(root, "items")
	if items == nil || items.kind != sequenceKind {
		return d.text
	}
	e := newEditor(d, d.text, root, false)
	old := items.sequenceElements()
	stay := map[int]int{}
	for i := range old {
		if i >= len(own) || own[i] != nil {
			stay[i] = len(stay)
		}
	}
	texts := make([]string, len(stay))
	switch {
	case len(stay) == 0:
		e.replaceBytes(items.start, items.end, "[]")
	case items.isFlow():
		e.flow.flowElements(items, old, texts, stay)
	default:
		e.blockElements(items, old, texts, stay)
	}
	return applyToText(e.src, e.edits, 0, len(e.src))
}

// putItems appends elements to the items of a list in block style.
func putItems(text string, lay *listLayout, values []any) string {
	if len(values) == 0 {
		return text
	}
	w := lineWriter(text)
	s, there := lay.keys["items"]
	col := s.dash
	if lay.seqCol >= 0 {
		col = lay.seqCol
	}
	if !there {
		col = lay.keyColumn()
	}
	w.writeCollection(values, col, false)
	switch {
	case !there:
		at := lay.appendOffset(text)
		return text[:at] + missingBreak(text[:at], w.nl) + strings.Repeat(" ", col) + "items:" + w.nl + w.b.String() + text[at:]
	case len(lay.items) == 0:
		end := lineEnd(text, s.start)
		rest := text[s.start:end]
		keep := ""
		if i := strings.IndexByte(rest, '#'); i >= 0 {
			keep = " " + rest[i:]
		}
		after := min(end+len(w.nl), len(text))
		return text[:s.start] + keep + w.nl + w.b.String() + text[after:]
	}
	at := contentEnd(text, lay.items[len(lay.items)-1], col)
	return text[:at] + missingBreak(text[:at], w.nl) + w.b.String() + text[at:]
}

// putResults replaces the results of a list in block style, or appends them; none reports that the list has no
// results now.
func putResults(text string, lay *listLayout, rs result.Results, none bool) string {
	s, there := lay.keys["results"]
	if len(rs) == 0 && (!there || none) {
		return text
	}
	w := lineWriter(text)
	if len(rs) > 0 {
		col := lay.keyColumn()
		w.writeIndent(col)
		w.b.WriteString("results:" + w.nl)
		w.writeCollection(resultValues(rs), col, false)
	}
	start, end := lay.appendOffset(text), lay.appendOffset(text)
	if there {
		start, end = s.line, contentEnd(text, s, s.dash)
	}
	out := text[:start] + missingBreak(text[:start], w.nl) + w.b.String() + text[end:]
	lay.shiftOffsetsAfter(end, len(out)-len(text))
	return out
}

// shiftOffsetsAfter moves the places after off.
func (lay *listLayout) shiftOffsetsAfter(off, by int) {
	keys := make(map[string]textSpan, len(lay.keys))
	for k, s := range lay.keys {
		if s.line >= off {
			s.line, s.start, s.end = s.line+by, s.start+by, s.end+by
		}
		keys[k] = s
	}
	lay.keys = keys
	items := make([]textSpan, len(lay.items))
	for i, s := range lay.items {
		if s.line >= off {
			s.line, s.start, s.end = s.line+by, s.start+by, s.end+by
		}
		items[i] = s
	}
	lay.items = items
}

// keyColumn is the column of the list's own keys.
func (lay *listLayout) keyColumn() int {
	for _, s := range lay.keys {
		return s.dash
	}
	return 0
}

// appendOffset is where keys can be appended: after the last one.
func (lay *listLayout) appendOffset(text string) int {
	end := 0
	for _, s := range lay.keys {
		end = max(end, s.end)
	}
	return min(end, len(text))
}

// contentEnd returns the end of a span without the empty lines and comments at its end that are at the column or above.
func contentEnd(text string, s textSpan, col int) int {
	end := s.end
	if body := text[s.start:s.end]; strings.Contains(body, "|+") || strings.Contains(body, ">+") {
		return end // the empty lines may be those of a block scalar that keeps them
	}
	for end > s.start {
		bol := lineStart(text, end-1)
		l := text[bol:end]
		c := firstNonBlank(l)
		if c != 0 && (c != '#' || strings.IndexByte(l, '#') > col) || bol < s.start {
			break
		}
		end = bol
	}
	return end
}

// missingBreak returns the line break that a text lacks at its end.
func missingBreak(text, nl string) string {
	if text == "" || text[len(text)-1] == '\n' {
		return ""
	}
	return nl
}

func lineWriter(text string) *blockWriter {
	w := &blockWriter{nl: "\n", step: 2}
	if i := strings.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		w.nl = "\r\n"
	}
	return w
}

// editList appends items to a list that is not in plain block style and sets its results, without decoding the rest.
func editList(d *Document, values []any, rs result.Results, none bool) []byte {
	root, err := d.parseNodes()
	if err != nil || root.kind != mappingKind {
		return []byte(d.text)
	}
	e := newEditor(d, d.text, root, false)
	added := map[string]any{}
	pairs := root.mappingPairs()
	keep := make([]bool, len(pairs))
	for i := range keep {
		keep[i] = true
	}
	if len(rs) > 0 {
		added["results"] = resultValues(rs)
	}
	if len(values) > 0 {
		added["items"] = values
	}
	for i, p := range pairs {
		pl := nodePlace{parent: root.indent, key: p.key, dash: -1, flow: root.isFlow()}
		key, _ := keyText(p.key)
		switch {
		case key == "results" && len(rs) == 0:
			keep[i] = none
		case key == "results":
			_ = e.replaceNode(p.val, added[key], pl)
			delete(added, key)
		case key == "items" && len(values) > 0:
			e.appendElements(p.val, values, pl)
			delete(added, key)
		}
	}
	if root.isFlow() {
		e.flow.flowEntries(root, pairs, keep, added)
	} else {
		e.removeEntries(root, pairs, keep)
		e.appendEntries(root, added)
	}
	return []byte(applyToText(e.src, e.edits, 0, len(e.src)))
}

// appendElements appends elements to a sequence.
func (e *documentEditor) appendElements(n *yamlNode, values []any, pl nodePlace) {
	if n.kind != sequenceKind || n.n == 0 {
		_ = e.replaceNode(n, values, pl)
		return
	}
	old := n.sequenceElements()
	stay := make(map[int]int, len(old))
	texts := make([]string, len(old), len(old)+len(values))
	for i := range old {
		stay[i] = i
	}
	for _, v := range values {
		texts = append(texts, e.newElementText(n, v))
	}
	if n.isFlow() {
		e.flow.flowElements(n, old, texts, stay)
	} else {
		e.blockElements(n, old, texts, stay)
	}
}
