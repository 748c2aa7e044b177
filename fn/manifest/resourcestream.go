// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bufio"
	"io"

	"github.com/prerig/prerig/fn/result"
)

// Write writes the text that Bytes returns. The common case, a list in block style in which only own items changed,
// is written in pieces without being assembled in memory first.
func (rl *ResourceList) Write(w io.Writer, items []*Document, results result.Results) error {
	if !rl.canWriteInPieces(items) {
		_, err := w.Write(rl.Bytes(items, results))
		return err
	}
	changed := func(i int) bool { return items[i].text != rl.Items[i].text }
	return rl.writePieces(w, results, changed, func(i int, out *lastByte) { out.putString(items[i].text) })
}

// WriteChanges writes what Write writes for the list's items with the changes.
func (rl *ResourceList) WriteChanges(w io.Writer, changes *Changes, results result.Results) error {
	if !rl.changesInPieces(changes) {
		items := make([]*Document, len(rl.Items))
		for i, d := range rl.Items {
			items[i] = changes.Or(i, d)
		}
		return rl.Write(w, items, results)
	}
	return rl.writePieces(w, results, changes.Changed, func(i int, out *lastByte) { _ = changes.WriteText(out, i, nil) })
}

// writePieces writes the list piece by piece. put writes the text of an item that has changed.
func (rl *ResourceList) writePieces(w io.Writer, results result.Results, changed func(int) bool, put func(int, *lastByte)) error {
	out := &lastByte{w: bufio.NewWriterSize(w, 1<<16)}
	text, at := rl.doc.text, 0
	for i, s := range rl.lay.items {
		if changed(i) {
			out.putString(text[at:s.start])
			put(i, out)
			at = s.end
		}
	}
	end := max(at, rl.lay.appendOffset(text))
	out.putString(text[at:end])
	if len(results) > 0 {
		rl.putResults(out, results)
	}
	out.putString(text[end:])
	return out.w.Flush()
}

// putResults writes the results one at a time, as a list may have as many results as items.
func (rl *ResourceList) putResults(out *lastByte, results result.Results) {
	fresh := lineWriter(rl.doc.text)
	col := rl.lay.keyColumn()
	fresh.writeIndent(col)
	fresh.b.WriteString("results:" + fresh.nl)
	if out.last != '\n' && out.last != 0 {
		out.putString(fresh.nl)
	}
	for i := range results {
		fresh.writeCollection(resultValues(results[i:i+1]), col, false)
		out.putString(fresh.b.String())
		fresh.b.Reset()
	}
}

// canWriteInPieces reports whether the list can be written from its text and the texts of its items alone.
func (rl *ResourceList) canWriteInPieces(items []*Document) bool {
	if _, there := rl.lay.keys["results"]; there || !rl.lay.block || len(items) != len(rl.Items) || len(items) == 0 {
		return false
	}
	for i, d := range items {
		if d == nil || d.list != rl.doc || d.index != i || d.text != rl.Items[i].text && rl.Items[i].hasAnchors() {
			return false
		}
	}
	return true
}

// changesInPieces is canWriteInPieces for the list's items with changes.
func (rl *ResourceList) changesInPieces(changes *Changes) bool {
	if !rl.canWriteInPieces(rl.Items) {
		return false
	}
	for i, d := range rl.Items {
		if changes.Changed(i) && d.hasAnchors() {
			return false
		}
	}
	return true
}

// lastByte remembers what was written last.
type lastByte struct {
	w    *bufio.Writer
	last byte
}

// WriteString is putString.
func (o *lastByte) WriteString(s string) (int, error) {
	o.putString(s)
	return len(s), nil
}

// putString writes; the error of a buffered writer stays until Flush.
func (o *lastByte) putString(s string) {
	if s != "" {
		_, _ = o.w.WriteString(s)
		o.last = s[len(s)-1]
	}
}
