// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// With returns the document with the smallest change of its text that makes Object return want. Unchanged values
// keep their bytes; see the package documentation for the rules. The result is decoded again and compared with
// want: if a text cannot be edited so that it holds want, With returns an error and never other content. Values
// have the types of Decode; other types go through JSON. If the document already has the value want, With returns
// the document itself.
func (d *Document) With(want map[string]any) (*Document, error) {
	var w any
	if want != nil {
		w = normalValue(want)
	}
	return d.withValue(w)
}

func (d *Document) withValue(want any) (*Document, error) {
	store := nodeStores.Get().(*nodeStore)
	defer store.releaseNodes() // what comes out has no nodes
	root, err := parseInto(store, d.text, d.col0, d.parent, d.inFlow, d.outerAnchors())
	var now any
	if err == nil {
		now, err = (&nodeDecoder{keep: true}).decodeValue(root)
	}
	if err != nil {
		if v, derr := d.decodeCached(); derr == nil && equalValues(v, want) {
			return d, nil
		}
		return nil, d.wrapError("editing", err)
	}
	if equalValues(now, want) {
		return d, nil
	}
	if d.list == nil && d.Empty() {
		return d.withFirstContent(want)
	}
	text := d.text
	if !root.isFlow() && !strings.HasSuffix(text, "\n") { // work on whole lines, and take the line break off at the end
		text += detectStyle(text, root).nl
		if root, err = parseInto(store, text, d.col0, d.parent, d.inFlow, d.outerAnchors()); err != nil {
			return nil, d.wrapError("editing", err)
		}
		_, _ = (&nodeDecoder{keep: true}).decodeValue(root)
	}
	next, err := d.tryEdits(text, root, want)
	if err != nil {
		return nil, d.wrapError("editing", err)
	}
	return next, nil
}

// tryEdits edits a text in several ways until the result holds what it is to hold. The first is nearly always the one; each of the
// others changes more of the text, or writes it less well.
func (d *Document) tryEdits(text string, root *yamlNode, want any) (*Document, error) {
	var last error
	for _, below := range []struct{ trim, quote, drop bool }{{}, {trim: true}, {quote: true}, {drop: true}} {
		for _, try := range []struct{ expand, plain bool }{{}, {plain: true}, {expand: true, plain: true}} {
			e := newEditor(d, text, root, try.expand)
			if try.expand && !e.aliases {
				continue
			}
			e.plain, e.trim, e.drop, e.w.quote = try.plain, below.trim, below.drop, below.quote
			next, err := e.applyEdits(root, want)
			if err == nil {
				return next, nil
			}
			last = err
		}
	}
	return nil, last
}

// withFirstContent returns a document without content, only comments and directives, its first.
func (d *Document) withFirstContent(want any) (*Document, error) {
	next := *d
	if next.text != "" && !strings.HasSuffix(next.text, "\n") {
		next.text += "\n"
	}
	next.text += string(Marshal(want))
	e := documentEditor{d: d}
	return &next, e.checkResult(&next, want)
}

// textEdit replaces bytes of a text.
type textEdit struct {
	start, end int
	text       string
}

// documentEditor collects the edits that turn a document's value into another.
type documentEditor struct {
	d       *Document
	src     string
	edits   []textEdit
	w       blockWriter
	json    bool // the whole document is JSON
	aliases bool // the document has aliases
	expand  bool // replace every alias by its value, as a last resort
	plain   bool // write what comes into a list fresh, also where it leaves another, and rename no entry
	trim    bool // take the blanks out of empty lines below what is written: they would become part of a block scalar
	drop    bool // take these lines out: below what is removed they would become part of a block scalar above it
	// renaming is set while the edited mapping replaces another one.
	renaming bool
	// anchored is set if the document has anchors; anchors holds the mappings with an anchor that no alias names.
	anchored bool
	anchors  []*yamlNode
	after    map[*yamlNode]any
	gone     map[*yamlNode]bool
}

// nodePlace is the position of a node.
type nodePlace struct {
	parent int       // column of the block collection around the node, -1 at the top
	key    *yamlNode // of values of mappings
	dash   int       // for entries of sequences: the offset of the dash, otherwise -1
	flow   bool      // inside a flow collection
}

func newEditor(d *Document, text string, root *yamlNode, expand bool) *documentEditor {
	e := &documentEditor{d: d, src: text, expand: expand, after: map[*yamlNode]any{}, gone: map[*yamlNode]bool{}}
	e.w = detectStyle(text, root)
	e.json = root.isFlow() && jsonLike(root)
	walkNodes(root, func(n *yamlNode) {
		e.aliases = e.aliases || n.kind == aliasKind
		e.anchored = e.anchored || n.anchor != ""
	})
	if e.anchored {
		e.findAnchors(root)
	}
	return e
}

// detectStyle finds how a document is written: its line breaks and the indentation of its mappings and sequences.
func detectStyle(src string, root *yamlNode) blockWriter {
	w := blockWriter{nl: "\n", step: 2, part: true}
	if i := strings.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		w.nl = "\r\n"
	}
	steps, seqs := map[int]int{}, map[int]int{}
	walkNodes(root, func(n *yamlNode) {
		if n.kind != mappingKind || n.isFlow() {
			return
		}
		for k := n.first; k != nil; k = k.next.next {
			v := k.next
			switch {
			case v.isFlow():
			case v.kind == mappingKind:
				steps[v.indent-n.indent]++
			case v.kind == sequenceKind:
				seqs[v.indent-n.indent]++
			}
		}
	})
	w.step, w.seq = mostFrequent(steps, 2), mostFrequent(seqs, 0)
	return w
}

// mostFrequent returns the key with the highest count, the smallest among equals.
func mostFrequent(counts map[int]int, def int) int {
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
func jsonLike(n *yamlNode) bool {
	c := n.first
	switch {
	case c == nil:
		return true
	case n.kind == sequenceKind && c.isFlow():
		return jsonLike(c)
	}
	return c.style == doubleStyle
}

// applyEdits makes the edits and checks their result.
func (e *documentEditor) applyEdits(root *yamlNode, want any) (*Document, error) {
	pl := nodePlace{parent: e.d.parent, dash: -1, flow: e.d.inFlow}
	if err := e.editNode(root, want, pl); err != nil {
		return nil, err
	}
	if e.trim || e.drop {
		e.trimBlankLines()
	}
	next := *e.d
	next.text = applyToText(e.src, e.edits, 0, len(e.src))
	if e.src == e.d.text {
		return &next, e.checkResult(&next, want)
	}
	cut := next
	cut.text = strings.TrimSuffix(next.text, e.w.nl)
	if err := e.checkResult(&cut, want); err == nil {
		return &cut, nil
	}
	return &next, e.checkResult(&next, want) // a block scalar at the end needs its line break
}

// trimBlankLines removes the blanks from the empty lines that follow the written text, or the lines themselves.
func (e *documentEditor) trimBlankLines() {
	for _, ed := range slices.Clone(e.edits) {
		at := ed.end
		wholeLines := at == 0 || e.src[at-1] == '\n' // are replaced
		if !wholeLines || ed.text != "" && !strings.HasSuffix(ed.text, "\n") {
			at = e.nextLine(at)
		}
		for at < len(e.src) {
			end := lineEnd(e.src, at)
			if firstNonBlank(e.src[at:end]) != 0 {
				break
			}
			if e.drop {
				end = e.nextLine(at)
			}
			e.replaceBytes(at, end, "")
			at = e.nextLine(at)
		}
	}
}

// checkResult decodes a document and compares it with what it is to be.
func (e *documentEditor) checkResult(d *Document, want any) error {
	if d.decodesToValue(want) {
		return nil
	}
	got, err := d.decodeCached()
	if err != nil {
		return fmt.Errorf("the text would not be readable any more: %w", err)
	}
	if !equalValues(got, want) {
		return fmt.Errorf("the text cannot be edited to hold the new value of %s", firstDifference(got, want, ""))
	}
	return nil
}

// firstDifference returns the path of the first difference.
func firstDifference(a, b any, path string) string {
	am, aok := a.(map[string]any)
	bm, bok := b.(map[string]any)
	if aok && bok {
		for _, k := range sortedKeys(bm, false) {
			if av, ok := am[k]; !ok || !equalValues(av, bm[k]) {
				return firstDifference(av, bm[k], strings.TrimPrefix(path+"."+k, "."))
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
			if !equalValues(al[i], bl[i]) {
				return firstDifference(al[i], bl[i], fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	if path == "" {
		return "the document"
	}
	return path
}

// applyToText returns src[from:to] with the edits applied, which must not overlap. Insertions at one place keep
// their order and precede a replacement there.
func applyToText(src string, edits []textEdit, from, to int) string {
	slices.SortStableFunc(edits, func(a, b textEdit) int {
		if a.start != b.start || (a.start == a.end) == (b.start == b.end) {
			return a.start - b.start
		}
		if a.start == a.end {
			return -1
		}
		return 1
	})
	var b strings.Builder
	size := to - from
	for _, ed := range edits {
		size += len(ed.text)
	}
	b.Grow(size)
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

func (e *documentEditor) replaceBytes(start, end int, text string) {
	if start == end && text == "" {
		return
	}
	e.edits = append(e.edits, textEdit{start, end, text})
}

// currentValue returns the value that a node has after the edits made so far: aliases follow their anchors.
func (e *documentEditor) currentValue(n *yamlNode) (any, error) {
	dec := nodeDecoder{}
	if n.known && len(e.after) == 0 && len(e.gone) == 0 {
		return n.v, nil
	}
	if len(e.after) > 0 || len(e.gone) > 0 {
		dec.instead = func(n *yamlNode) (any, bool) {
			if e.gone[n] {
				return goneValue{}, true
			}
			v, ok := e.after[n]
			return v, ok
		}
	}
	return dec.decodeValue(n)
}

// alreadyHasValue reports whether a node has a value already and can stay as it is.
func (e *documentEditor) alreadyHasValue(n *yamlNode, want any) bool {
	if e.expand && e.aliases {
		has := false
		walkNodes(n, func(c *yamlNode) { has = has || c.kind == aliasKind })
		if has {
			return false
		}
	}
	got, err := e.currentValue(n)
	return err == nil && equalValues(got, want)
}

// editNode makes the edits that set a node to the value want.
func (e *documentEditor) editNode(n *yamlNode, want any, pl nodePlace) error {
	if e.alreadyHasValue(n, want) {
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
		if name, ok := e.findAliasForMapping(n, w, pl); ok {
			e.putAlias(n, name, pl)
			return nil
		}
		if n.kind == mappingKind && n.n > 0 && len(w) > 0 {
			return e.editMapping(n, w, pl)
		}
	case []any:
		if n.kind == sequenceKind && n.n > 0 && len(w) > 0 {
			return e.editSequence(n, w, pl)
		}
	}
	return e.replaceNode(n, want, pl)
}

// recordLostAnchors notes that the anchors in a node are no longer in the text at their place.
func (e *documentEditor) recordLostAnchors(n *yamlNode) {
	walkNodes(n, func(c *yamlNode) {
		if c.anchor != "" {
			e.gone[c] = true
			delete(e.after, c)
		}
	})
}
