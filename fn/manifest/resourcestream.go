// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bufio"
	"io"

	"github.com/prerig/prerig/fn/result"
)

// Write writes what Bytes gives. The common case, a list in block style whose own items changed at most, goes out in pieces
// without being put together in memory first.
func (rl *ResourceList) Write(w io.Writer, items []*Document, results result.Results) error {
	if !rl.inPieces(items) {
		_, err := w.Write(rl.Bytes(items, results))
		return err
	}
	out := &lastByte{w: bufio.NewWriterSize(w, 1<<16)}
	text, at := rl.doc.text, 0
	for i, s := range rl.lay.items {
		if it := items[i]; it.text != text[s.start:s.end] {
			out.putString(text[at:s.start])
			out.putString(it.text)
			at = s.end
		}
	}
	end := max(at, rl.lay.appendOffset(text))
	out.putString(text[at:end])
	if len(results) > 0 {
		fresh := lineWriter(text)
		col := rl.lay.keyColumn()
		fresh.writeIndent(col)
		fresh.b.WriteString("results:" + fresh.nl)
		fresh.writeCollection(resultValues(results), col, false)
		if out.last != '\n' && out.last != 0 {
			out.putString(fresh.nl)
		}
		out.putString(fresh.b.String())
	}
	out.putString(text[end:])
	return out.w.Flush()
}

// inPieces reports whether the list can be written from its text and the texts of its items alone.
func (rl *ResourceList) inPieces(items []*Document) bool {
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

// lastByte remembers what was written last.
type lastByte struct {
	w    *bufio.Writer
	last byte
}

// putString writes; the error of a buffered writer stays until Flush.
func (o *lastByte) putString(s string) {
	if s != "" {
		_, _ = o.w.WriteString(s)
		o.last = s[len(s)-1]
	}
}
