// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"
)

// textSpan is the position of a part of a document within its text.
type textSpan struct {
	start, end int
	col0       int // column of start
	dash       int // column of the dash before it; of the key for values of mappings
	line       int // offset of the start of the line that the dash is in
	flow       bool
}

// listLayout is what is known of a list's text.
type listLayout struct {
	kind    string
	api     string
	block   bool                // found by the scan, otherwise by the parser
	keys    map[string]textSpan // top-level keys: from the line of the key to that of the next one (block only)
	items   []textSpan
	hasList bool // items is present and is a list or null
	// otherItems describes items that are not a list.
	otherItems string
	seqCol     int // column of the dashes, -1 without any
}

// Items returns the elements of the items of a list, each as a document with its own place. A list is a kind that
// ends in List (List, DeploymentList, ResourceList); ok is false for other kinds. Lists in block style are split as
// text and their elements are not decoded; other styles are parsed.
func (d *Document) Items() (items []*Document, ok bool, err error) {
	if m, sure := d.peekKind(); sure && !strings.HasSuffix(m, "List") {
		return nil, false, nil
	}
	lay, err := d.findLayout()
	if err != nil {
		return nil, false, err
	}
	if lay != nil && lay.kind == "List" && lay.api == "v1" && lay.otherItems != "" {
		return nil, false, d.wrapError("reading the list in", &syntaxError{off: lay.keys["items"].start,
			msg: "the items of a List must be a list, and are " + lay.otherItems})
	}
	if lay == nil || !strings.HasSuffix(lay.kind, "List") || !lay.hasList {
		return nil, false, nil
	}
	return lay.elementsOf(d), true, nil
}

// peekKind reads the kind from a line of its own near the start, which is cheaper than Peek. sure is false if that
// is not conclusive.
func (d *documentText) peekKind() (kind string, sure bool) {
	i := d.contentStart()
	if i >= len(d.text) || d.text[i] == '{' {
		return "", false
	}
	col := i - lineStart(d.text, i)
	if lineStart(d.text, i) == 0 {
		col += d.col0
	}
	l := newLineScanner(d.text[i:], col)
	for n := 0; n < 3 && l.nextLine(); n++ {
		if l.col != col {
			return "", false
		}
		if key, val := l.keyValue(); key == "kind" {
			ok := readSimple(val, &kind)
			l.nextLine() // the value may go on
			return kind, ok && !l.unsure
		}
	}
	return "", false
}

// findLayout finds the parts of a list, by the scan if that is conclusive, otherwise by the parser. It returns nil
// unless the document is a mapping.
func (d *Document) findLayout() (*listLayout, error) {
	if lay := d.scanLayout(); lay != nil {
		return lay, nil
	}
	return parseLayout(d)
}

// scanLayout finds the parts of a list in block style, and nil where it is not sure.
func (d *documentText) scanLayout() *listLayout {
	first := d.contentStart()
	if first >= len(d.text) || d.text[first] == '{' || strings.HasPrefix(d.text, "\ufeff") {
		return nil
	}
	bol := lineStart(d.text, first)
	l := newLineScanner(d.text, d.col0)
	l.pos = bol
	lay := &listLayout{block: true, keys: map[string]textSpan{}, seqCol: -1}
	top, key := -1, ""
	for l.nextLine() {
		if top < 0 {
			top = l.col
		}
		if l.col < top {
			return nil
		}
		if l.col == top && !isDash(l.s, l.off) {
			lay.closeKey(key, l.start)
			var val string
			if key, val = l.keyValue(); key == "" || !lay.openKey(key, val, l) {
				return nil
			}
			continue
		}
		if key == "items" && !lay.addElementLine(l) {
			return nil
		}
	}
	if l.unsure {
		return nil
	}
	lay.closeKey(key, markerEnd(d.text))
	return lay
}

// markerEnd returns where the content of a document ends: before a document end line.
func markerEnd(s string) int {
	for i := 0; i < len(s); {
		j := strings.Index(s[i:], "\n...")
		if j < 0 {
			break
		}
		if i += j + 1; isMarker(s[i:]) {
			return i
		}
	}
	return len(s)
}

func isDash(s string, i int) bool { return s[i] == '-' && (i+1 == len(s) || isBlankOrEnd(s[i+1])) }

// elementsOf returns the elements of a list, each as a document.
func (lay *listLayout) elementsOf(list *Document) []*Document {
	docs := make([]Document, len(lay.items))
	out := make([]*Document, len(lay.items))
	line, at := list.line, 0
	shared := &listAnchors{}
	for i, s := range lay.items {
		line += strings.Count(list.text[at:s.start], "\n")
		at = s.start
		docs[i] = Document{path: list.path, index: i, documentText: s.textIn(list, line, shared)}
		out[i] = &docs[i]
	}
	return out
}

// textIn returns the text of a span of a list, which starts at a line.
func (s textSpan) textIn(list *Document, line int, anchors *listAnchors) documentText {
	return documentText{text: list.text[s.start:s.end], line: line, list: list, col0: s.col0, parent: s.dash,
		inFlow: s.flow, start: s.start, end: s.end, anchors: anchors}
}

// openKey starts a top-level key.
func (lay *listLayout) openKey(key, val string, l *lineScanner) bool {
	if _, dup := lay.keys[key]; dup {
		return false
	}
	colon := l.keyEnd(l.off, lineEnd(l.s, l.off))
	lay.keys[key] = textSpan{start: colon, line: l.start, col0: l.col + colon - l.off, dash: l.col}
	switch key {
	case "kind":
		return readSimple(val, &lay.kind)
	case "apiVersion":
		return readSimple(val, &lay.api)
	case "items":
		lay.hasList = val == "" || val == "[]" || val == "null"
		return lay.hasList
	}
	return true
}

// closeKey ends a top-level key and the element that is open in it.
func (lay *listLayout) closeKey(key string, at int) {
	if key == "" {
		return
	}
	s := lay.keys[key]
	s.end = at
	lay.keys[key] = s
	if n := len(lay.items); key == "items" && n > 0 {
		lay.items[n-1].end = at
	}
}

// addElementLine notes a line below items.
func (lay *listLayout) addElementLine(l *lineScanner) bool {
	if lay.seqCol < 0 {
		if !isDash(l.s, l.off) {
			return false
		}
		lay.seqCol = l.col
	}
	switch {
	case l.col > lay.seqCol:
		return true
	case l.col < lay.seqCol || !isDash(l.s, l.off):
		return false
	}
	if n := len(lay.items); n > 0 {
		lay.items[n-1].end = l.start
	}
	i := l.off + 1
	for i < len(l.s) && l.s[i] == ' ' {
		i++
	}
	if i == len(l.s) || l.s[i] == '\n' || l.s[i] == '\r' || l.s[i] == '#' {
		i = l.off + 1
	}
	lay.items = append(lay.items, textSpan{start: i, col0: l.col + i - l.off, dash: l.col, line: l.start})
	return true
}

// parseLayout finds the parts of a list with the parser.
func parseLayout(d *Document) (*listLayout, error) {
	root, err := d.parseNodes()
	if err != nil {
		if v, derr := d.decode(); derr == nil {
			if m, ok := v.(map[string]any); !ok || m["items"] == nil {
				return nil, nil
			}
		}
		return nil, d.wrapError("reading the list in", err)
	}
	if root.kind != mappingKind {
		return nil, nil
	}
	lay := &listLayout{keys: map[string]textSpan{}, seqCol: -1}
	var lines linePlace
	for _, kv := range root.mappingPairs() {
		key, _ := keyText(kv.key)
		if _, dup := lay.keys[key]; dup {
			return nil, d.wrapError("reading the list in", &syntaxError{off: kv.key.start, msg: fmt.Sprintf("found the key %q twice in the same mapping", key)})
		}
		v := kv.val
		lay.keys[key] = d.nodeSpan(v, root, &lines)
		switch key {
		case "kind":
			lay.kind = v.val
		case "apiVersion":
			lay.api = v.val
		case "items":
			lay.hasList = v.kind == sequenceKind || v.kind == scalarKind && resolveScalar(v.val) == nil && v.style == plainStyle
			switch {
			case v.kind == mappingKind:
				lay.otherItems = "a map"
			case !lay.hasList && v.kind == scalarKind:
				lay.otherItems = "a text"
			}
			if v.kind == sequenceKind {
				for e := v.first; e != nil; e = e.next {
					lay.items = append(lay.items, d.nodeSpan(e, v, &lines))
				}
			}
		}
	}
	return lay, nil
}

// linePlace is an offset and the start of its line.
type linePlace struct{ at, bol int }

// nodeSpan returns the span of a node inside a collection. lines advances with the calls, in the order of the text,
// as lines can be very long.
func (d *documentText) nodeSpan(n, in *yamlNode, lines *linePlace) textSpan {
	s := textSpan{start: n.prop, end: n.end, flow: in.isFlow(), dash: in.indent}
	if i := strings.LastIndexByte(d.text[lines.at:n.prop], '\n'); i >= 0 {
		lines.bol = lines.at + i + 1
	}
	lines.at = n.prop
	bol := lines.bol
	s.col0 = n.prop - bol
	if bol == 0 {
		s.col0 += d.col0
	}
	if i := strings.IndexByte(d.text[n.end:], '\n'); !s.flow && i >= 0 {
		s.end = n.end + i + 1
	}
	return s
}

// WithItems returns the list with the elements replaced: as many as Items gave, in the same order. Only the elements that
// differ change bytes.
func (d *Document) WithItems(items []*Document) (*Document, error) {
	old, ok, err := d.Items()
	if err != nil {
		return nil, err
	}
	if !ok || len(old) != len(items) {
		return nil, fmt.Errorf("putting items back into %s: expected %d and got %d", d, len(old), len(items))
	}
	var b strings.Builder
	b.Grow(len(d.text) + len(d.text)/4)
	at, changed, anchored := 0, false, false
	for i, it := range items {
		o := old[i]
		if it.text == o.text {
			continue
		}
		changed = true
		anchored = anchored || o.hasAnchors()
		b.WriteString(d.text[at:o.start])
		b.WriteString(it.text)
		at = o.end
	}
	if !changed {
		return d, nil
	}
	b.WriteString(d.text[at:])
	next := *d
	next.text = b.String()
	if !anchored {
		return &next, nil
	}
	return withAnchoredItems(d, &next, items)
}

// withAnchoredItems checks that an element that lost an anchor has not changed another one; if it has, it edits the
// whole list by value.
func withAnchoredItems(d, next *Document, items []*Document) (*Document, error) {
	want, err := d.Object()
	if err != nil {
		return nil, err
	}
	want = copyMap(want)
	list := make([]any, len(items))
	for i, it := range items {
		if list[i], err = it.decodeAny(); err != nil {
			return nil, err
		}
	}
	want["items"] = list
	if got, err := next.Object(); err == nil && equalValues(got, want) {
		return next, nil
	}
	return d.With(want)
}

func copyMap(m map[string]any) map[string]any {
	out := make(map[string]any, len(m)+1)
	for k, v := range m {
		out[k] = v
	}
	return out
}
