// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// With gives the document with the least change of its text that makes Object give want. What want leaves alone keeps
// its bytes; see the package documentation for the rules. The result is decoded again and compared with want: where a
// text cannot be edited so that it holds want, With returns an error and never other content. Values are those of
// Decode; other types go through JSON. A want that the document has already gives the document itself.
func (d *Document) With(want map[string]any) (*Document, error) {
	var w any
	if want != nil {
		w = normal(want)
	}
	return d.with(w)
}

func (d *Document) with(want any) (*Document, error) {
	root, err := d.parse()
	var now any
	if err == nil {
		now, err = (&decoder{keep: true}).value(root)
	}
	if err != nil {
		if v, derr := d.value(); derr == nil && equal(v, want) {
			return d, nil
		}
		return nil, d.wrap("editing", err)
	}
	if equal(now, want) {
		return d, nil
	}
	if d.list == nil && d.Empty() {
		return d.filled(want)
	}
	text := d.text
	if !root.flow() && !strings.HasSuffix(text, "\n") { // work on whole lines, and take the line break off at the end
		text += detect(text, root).nl
		if root, err = parseText(text, d.col0, d.parent, d.inFlow, d.outer()); err != nil {
			return nil, d.wrap("editing", err)
		}
		_, _ = (&decoder{keep: true}).value(root)
	}
	next, err := d.tryEdits(text, root, want)
	if err == nil {
		return next, nil
	}
	// Blanks after the last line can become part of a text that is appended before them.
	if trimmed := strings.TrimRight(text, " \t\r\n"); !root.flow() && len(trimmed)+1 < len(text) {
		trimmed += detect(text, root).nl
		if root, perr := parseText(trimmed, d.col0, d.parent, d.inFlow, d.outer()); perr == nil {
			_, _ = (&decoder{keep: true}).value(root)
			if next, terr := d.tryEdits(trimmed, root, want); terr == nil {
				return next, nil
			}
		}
	}
	return nil, d.wrap("editing", err)
}

// tryEdits edits a text, at last with every alias written out.
func (d *Document) tryEdits(text string, root *node, want any) (*Document, error) {
	var last error
	for _, try := range []struct{ expand, plain bool }{{}, {plain: true}, {expand: true, plain: true}} {
		e := newEditor(d, text, root, try.expand)
		e.plain = try.plain
		next, err := e.run(root, want)
		if err == nil {
			return next, nil
		}
		last = err
		if !e.aliases && try.plain {
			break
		}
	}
	return nil, last
}

// filled gives a document without content, only comments and directives, its first.
func (d *Document) filled(want any) (*Document, error) {
	next := *d
	if next.text != "" && !strings.HasSuffix(next.text, "\n") {
		next.text += "\n"
	}
	next.text += string(Marshal(want))
	e := editor{d: d}
	return &next, e.check(&next, want)
}

// edit replaces bytes of a text.
type edit struct {
	start, end int
	text       string
}

// editor collects the edits that turn a document's value into another.
type editor struct {
	d       *Document
	src     string
	edits   []edit
	w       writer
	json    bool // the whole document is JSON
	aliases bool // the document has aliases
	expand  bool // replace every alias by its value
	plain   bool // write what comes into a list fresh, also where it leaves another, and rename no entry
	// renaming says that the mapping that is edited takes the place of another.
	renaming bool
	// anchored says that the document has anchors, and anchors are the mappings that have one which no alias names.
	anchored bool
	anchors  []*node
	after    map[*node]any
	gone     map[*node]bool
}

// place is where a node stands.
type place struct {
	parent int   // column of the block collection around the node, -1 at the top
	key    *node // of values of mappings
	dash   int   // of entries of sequences: the offset of the dash, else -1
	flow   bool  // inside a flow collection
}

func newEditor(d *Document, text string, root *node, expand bool) *editor {
	e := &editor{d: d, src: text, expand: expand, after: map[*node]any{}, gone: map[*node]bool{}}
	e.w = detect(text, root)
	e.json = root.flow() && jsonLike(root)
	walk(root, func(n *node) {
		e.aliases = e.aliases || n.kind == aliasKind
		e.anchored = e.anchored || n.anchor != ""
	})
	if e.anchored {
		e.findAnchors(root)
	}
	return e
}

// detect finds how a document is written: its line breaks and the indentation of its mappings and sequences.
func detect(src string, root *node) writer {
	w := writer{nl: "\n", step: 2, part: true}
	if i := strings.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		w.nl = "\r\n"
	}
	steps, seqs := map[int]int{}, map[int]int{}
	walk(root, func(n *node) {
		if n.kind != mappingKind || n.flow() {
			return
		}
		for k := n.first; k != nil; k = k.next.next {
			v := k.next
			switch {
			case v.flow():
			case v.kind == mappingKind:
				steps[v.indent-n.indent]++
			case v.kind == sequenceKind:
				seqs[v.indent-n.indent]++
			}
		}
	})
	w.step, w.seq = most(steps, 2), most(seqs, 0)
	return w
}

// most gives the key with the highest count, the smallest among equals.
func most(counts map[int]int, def int) int {
	best, n := def, 0
	for k, c := range counts {
		if c > n || c == n && k < best {
			best, n = k, c
		}
	}
	return best
}

// jsonLike reports whether a flow collection is written as JSON is: its first key, or the first text in a sequence, is
// in double quotes.
func jsonLike(n *node) bool {
	c := n.first
	switch {
	case c == nil:
		return true
	case n.kind == sequenceKind && c.flow():
		return jsonLike(c)
	}
	return c.style == doubleStyle
}

// run makes the edits and checks what they give.
func (e *editor) run(root *node, want any) (*Document, error) {
	pl := place{parent: e.d.parent, dash: -1, flow: e.d.inFlow}
	if err := e.node(root, want, pl); err != nil {
		return nil, err
	}
	next := *e.d
	next.text = apply(e.src, e.edits, 0, len(e.src))
	if e.src == e.d.text {
		return &next, e.check(&next, want)
	}
	cut := next
	cut.text = strings.TrimSuffix(next.text, e.w.nl)
	if err := e.check(&cut, want); err == nil {
		return &cut, nil
	}
	return &next, e.check(&next, want) // a block scalar at the end needs its line break
}

// check decodes a document and compares it with what it is to be.
func (e *editor) check(d *Document, want any) error {
	got, err := d.value()
	if err != nil {
		return fmt.Errorf("the text would not be readable any more: %w", err)
	}
	if !equal(got, want) {
		return fmt.Errorf("the text cannot be edited to hold the new value of %s", differs(got, want, ""))
	}
	return nil
}

// differs gives the path of the first difference.
func differs(a, b any, path string) string {
	am, aok := a.(map[string]any)
	bm, bok := b.(map[string]any)
	if aok && bok {
		for _, k := range sortedKeys(bm, false) {
			if av, ok := am[k]; !ok || !equal(av, bm[k]) {
				return differs(av, bm[k], strings.TrimPrefix(path+"."+k, "."))
			}
		}
		for _, k := range sortedKeys(am, false) {
			if _, ok := bm[k]; !ok {
				return strings.TrimPrefix(path+"."+k, ".")
			}
		}
	}
	al, aok := a.([]any)
	bl, bok := b.([]any)
	if aok && bok && len(al) == len(bl) {
		for i := range al {
			if !equal(al[i], bl[i]) {
				return differs(al[i], bl[i], fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	if path == "" {
		return "the document"
	}
	return path
}

// apply gives src[from:to] with the edits in it, which do not overlap; insertions at one place keep
// their order and come before what is replaced there.
func apply(src string, edits []edit, from, to int) string {
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.start != b.start || (a.start == a.end) == (b.start == b.end) {
			return a.start - b.start
		}
		if a.start == a.end {
			return -1
		}
		return 1
	})
	var b strings.Builder
	b.Grow(to - from + 256)
	at := from
	for _, ed := range edits {
		if ed.start < at { // inside a part that is already replaced
			continue
		}
		b.WriteString(src[at:ed.start])
		b.WriteString(ed.text)
		at = ed.end
	}
	b.WriteString(src[at:to])
	return b.String()
}

func (e *editor) put(start, end int, text string) {
	if start == end && text == "" {
		return
	}
	e.edits = append(e.edits, edit{start, end, text})
}

// value gives the value that a node has after the edits made so far: aliases follow their anchors.
func (e *editor) value(n *node) (any, error) {
	dec := decoder{}
	if n.known && len(e.after) == 0 && len(e.gone) == 0 {
		return n.v, nil
	}
	if len(e.after) > 0 || len(e.gone) > 0 {
		dec.instead = func(n *node) (any, bool) {
			if e.gone[n] {
				return goneValue{}, true
			}
			v, ok := e.after[n]
			return v, ok
		}
	}
	return dec.value(n)
}

// holds reports whether a node has a value already and can stay as it is.
func (e *editor) holds(n *node, want any) bool {
	if e.expand && e.aliases {
		has := false
		walk(n, func(c *node) { has = has || c.kind == aliasKind })
		if has {
			return false
		}
	}
	got, err := e.value(n)
	return err == nil && equal(got, want)
}

// node makes the edits that give a node the value want.
func (e *editor) node(n *node, want any, pl place) error {
	if e.holds(n, want) {
		return nil
	}
	if n.anchor != "" {
		defer func() {
			if !e.gone[n] {
				e.after[n] = want
			}
		}()
	}
	switch w := want.(type) {
	case map[string]any:
		if name, ok := e.aliasFor(n, w, pl); ok {
			e.putAlias(n, name, pl)
			return nil
		}
		if n.kind == mappingKind && n.n > 0 && len(w) > 0 {
			return e.mapping(n, w, pl)
		}
	case []any:
		if n.kind == sequenceKind && n.n > 0 && len(w) > 0 {
			return e.sequence(n, w, pl)
		}
	}
	return e.replace(n, want, pl)
}

// lose notes that the anchors in a node are no longer in the text at their place.
func (e *editor) lose(n *node) {
	walk(n, func(c *node) {
		if c.anchor != "" {
			e.gone[c] = true
			delete(e.after, c)
		}
	})
}
