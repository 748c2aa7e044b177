// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"
)

// With returns the document with the smallest change of its text that makes Object return want. Unchanged values
// keep their bytes; see the package documentation for the rules. The result is decoded again and compared with
// want: if a text cannot be edited so that it holds want, With returns an error and never other content. Values
// have the types of Decode; other types go through JSON. If the document already has the value want, With returns
// the document itself.
func (d *Document) With(want map[string]any) (*Document, error) {
	o, err := d.open()
	if err == nil {
		defer o.Close()
		return o.With(want)
	}
	if v, derr := d.decode(); derr == nil && equalValues(v, wantedValue(want)) {
		return d, nil
	}
	return nil, d.wrapError("editing", err)
}

// Opened is a document that was parsed to be read and edited. It is for one goroutine.
type Opened struct {
	d     *Document
	store *nodeStore
	root  *yamlNode
	value any
}

// Open returns the document parsed, and its object, which must not be changed. What is opened has to be closed. It is nil for a document that
// cannot be edited: Object returns its value, or what is wrong with it.
func (d *Document) Open() (*Opened, map[string]any) {
	o, err := d.open()
	if err != nil {
		return nil, nil
	}
	if m, ok := o.value.(map[string]any); ok {
		return o, m
	}
	o.Close()
	return nil, nil
}

func (d *Document) open() (*Opened, error) {
	o := &Opened{d: d, store: nodeStores.Get().(*nodeStore)}
	err := o.parse(d.text)
	if err != nil {
		o.Close()
	}
	return o, err
}

func (o *Opened) parse(text string) (err error) {
	if o.root, err = o.d.parseWith(o.store, text); err == nil {
		o.value, err = (&nodeDecoder{keep: true}).decodeValue(o.root)
	}
	return err
}

// Close ends the use of what was opened.
func (o *Opened) Close() {
	if o.store != nil {
		o.store.releaseNodes() // what comes out has no nodes
		o.store, o.root = nil, nil
	}
}

// With is that of the document. It can be called once.
func (o *Opened) With(want map[string]any) (*Document, error) {
	d, value := o.d, wantedValue(want)
	if equalValues(o.value, value) {
		return d, nil
	}
	if d.list == nil && d.Empty() {
		return withFirstContent(d, value)
	}
	text := d.text
	if !o.root.isFlow() && !strings.HasSuffix(text, "\n") { // work on whole lines, and take the line break off at the end
		text += detectStyle(text, o.root).nl
		if err := o.parse(text); err != nil {
			return nil, d.wrapError("editing", err)
		}
	}
	next, err := editDocument(d, text, o.root, value)
	if err != nil {
		return nil, d.wrapError("editing", err)
	}
	return next, nil
}

// wantedValue returns what a document is to hold, nil for nothing.
func wantedValue(want map[string]any) any {
	if want == nil {
		return nil
	}
	return normalValue(want)
}

// editDocument edits the text of a document in several ways until the result holds what it is to hold. The first is nearly always the one; each of the
// others changes more of the text, or writes it less well.
func editDocument(d *Document, text string, root *yamlNode, want any) (*Document, error) {
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
func withFirstContent(d *Document, want any) (*Document, error) {
	next := *d
	if next.text != "" && !strings.HasSuffix(next.text, "\n") {
		next.text += "\n"
	}
	next.text += string(Marshal(want))
	return &next, checkResult(&next, want)
}

// documentEditor collects the edits that turn a document's value into another.
type documentEditor struct {
	d *Document
	editedText
	anchorTracker
	flow  flowEditor
	w     blockWriter
	plain bool // write what comes into a list fresh, also where it leaves another, and rename no entry
	trim  bool // take the blanks out of empty lines below what is written: they would become part of a block scalar
	drop  bool // take these lines out: below what is removed they would become part of a block scalar above it
	// renaming is set while the edited mapping replaces another one.
	renaming bool
}

// nodePlace is the position of a node.
type nodePlace struct {
	parent int       // column of the block collection around the node, -1 at the top
	key    *yamlNode // of values of mappings
	dash   int       // for entries of sequences: the offset of the dash, otherwise -1
	flow   bool      // inside a flow collection
}

func newEditor(d *Document, text string, root *yamlNode, expand bool) *documentEditor {
	e := &documentEditor{d: d, anchorTracker: newAnchorTracker(root, expand), w: detectStyle(text, root)}
	e.sourceText = sourceText{src: text, col0: d.col0, nl: e.w.nl}
	e.flow = flowEditor{editedText: &e.editedText, json: root.isFlow() && jsonLike(root), inFlow: d.inFlow}
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
		e.trimBlankLines(e.drop)
	}
	next := *e.d
	next.text = applyToText(e.src, e.edits, 0, len(e.src))
	if e.src == e.d.text {
		return &next, checkResult(&next, want)
	}
	cut := next
	cut.text = strings.TrimSuffix(next.text, e.nl)
	if err := checkResult(&cut, want); err == nil {
		return &cut, nil
	}
	return &next, checkResult(&next, want) // a block scalar at the end needs its line break
}

// checkResult decodes a document and compares it with what it is to be.
func checkResult(d *Document, want any) error {
	if d.decodesToValue(want) {
		return nil
	}
	got, err := d.decodeAny()
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

// editNode makes the edits that set a node to the value want.
func (e *documentEditor) editNode(n *yamlNode, want any, pl nodePlace) error {
	if e.alreadyHasValue(n, want) {
		return nil
	}
	if n.anchor != "" {
		defer func() {
			if !e.lost[n] {
				e.after[n] = want
			}
		}()
	}
	switch w := want.(type) {
	case map[string]any:
		if name, ok := e.findUnnamedAnchor(n, w); ok && !e.plain && pl.key != nil && !pl.flow {
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

// putAlias writes an alias in the place of a block mapping below a key.
func (e *documentEditor) putAlias(n *yamlNode, name string, pl nodePlace) {
	for c := n.first; c != nil; c = c.next {
		e.recordLostAnchors(c)
	}
	floor := e.valueFloor(n, pl)
	e.replaceBytes(floor, floor, " *"+name)
	e.replaceBytes(lineEnd(e.src, floor), lineEnd(e.src, n.end), "")
}
