// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"
)

// Marshal writes a value as fresh YAML: block style, two spaces, sequences not indented, no line folding, strings
// quoted if a reader of YAML 1.1 or 1.2 could take them for another type, multi-line strings as literal blocks.
// Keys are sorted, but apiVersion, kind, metadata and spec come first in an object, and name in the elements of a
// list. Values have the types that Decode returns; other types go through JSON.
func Marshal(v any) []byte {
	w := blockWriter{nl: "\n", step: 2}
	v = normalValue(v)
	if isInline(v) {
		return []byte(w.scalarText(v, 0) + "\n")
	}
	w.writeCollection(v, 0, false)
	return []byte(w.b.String())
}

// blockWriter writes block style.
type blockWriter struct {
	b    strings.Builder
	nl   string
	step int // indentation of mappings
	seq  int // indentation of sequences in mappings
	// carry has the texts of elements that come from elsewhere in the document.
	carry *elementCarrier
	part  bool // the text is inserted between other text: no block scalars that would absorb the empty lines after them
	quote bool // no block scalars at all: what follows could become part of them
}

// isInline reports whether a value is written on the line of its key.
func isInline(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return true
}

func (w *blockWriter) writeIndent(n int) {
	for ; n > len(blanks); n -= len(blanks) {
		w.b.WriteString(blanks)
	}
	if n > 0 {
		w.b.WriteString(blanks[:n])
	}
}

const blanks = "                                                                "

// growForValue makes room for a value that is written at a column, so that the text is not copied each time it has
// grown.
func (w *blockWriter) growForValue(v any, col int) { w.b.Grow(roughSize(v, col)) }

// roughSize estimates the bytes of a value in block style at a column.
func roughSize(v any, col int) int {
	switch v := v.(type) {
	case string:
		return len(v) + 4
	case map[string]any:
		size := 0
		for key, e := range v {
			size += col + len(key) + 3 + roughSize(e, col+2)
		}
		return size
	case []any:
		size := 0
		for _, e := range v {
			size += col + 4 + roughSize(e, col+2)
		}
		return size
	}
	return 8
}

// writeCollection writes a collection, each line with its line break. Where inline is set the first line continues one that is
// already at the column.
func (w *blockWriter) writeCollection(v any, col int, inline bool) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v, inline) {
			if !inline {
				w.writeIndent(col)
			}
			inline = false
			w.writeEntry(k, v[k], col)
		}
	case []any:
		for _, e := range v {
			w.writeItem(e, col, inline)
			inline = false
		}
	}
}

// writeItem writes an element of a sequence with its dash at col.
func (w *blockWriter) writeItem(v any, col int, inline bool) {
	if w.carry != nil && !inline {
		if head, text, ok := w.carry.elementText(v, col); ok {
			w.b.WriteString(head)
			w.writeIndent(col)
			w.b.WriteString("- " + text)
			return
		}
	}
	if !inline {
		w.writeIndent(col)
	}
	w.b.WriteByte('-')
	w.writeElement(v, col)
}

// writeEntry writes a key at the position and its value.
func (w *blockWriter) writeEntry(key string, v any, col int) {
	w.b.WriteString(keyString(key))
	w.b.WriteByte(':')
	w.writeAfterKey(v, col)
}

// writeAfterKey writes a value after a key's colon; col is the column of the key.
func (w *blockWriter) writeAfterKey(v any, col int) {
	if isInline(v) {
		w.b.WriteByte(' ')
		w.b.WriteString(w.scalarText(v, col))
		w.b.WriteString(w.nl)
		return
	}
	w.b.WriteString(w.nl)
	if _, ok := v.([]any); ok {
		w.writeCollection(v, col+w.seq, false)
		return
	}
	w.writeCollection(v, col+w.step, false)
}

// writeElement writes a value after a dash at col.
func (w *blockWriter) writeElement(v any, col int) {
	w.b.WriteByte(' ')
	if isInline(v) {
		w.b.WriteString(w.scalarText(v, col))
		w.b.WriteString(w.nl)
		return
	}
	w.writeCollection(v, col+2, true)
}

// scalarText writes a scalar or an empty collection after an indicator; parent is the column of the collection around it.
// The line break after it is not written.
func (w *blockWriter) scalarText(v any, parent int) string {
	if s, ok := v.(string); ok && !w.quote {
		step := max(w.step, 1)
		if header, lines, ok := literalBlock(s, step); ok && !(w.part && strings.Contains(header, "+")) {
			return header + w.writeLines(lines, parent+step)
		}
	}
	return scalarText(v, false, plainStyle)
}

// writeLines writes the lines of a block scalar, each with the line break before it.
func (w *blockWriter) writeLines(lines []string, col int) string {
	var b strings.Builder
	pad := strings.Repeat(" ", col)
	for _, l := range lines {
		b.WriteString(w.nl)
		if l != "" {
			b.WriteString(pad)
			b.WriteString(l)
		}
	}
	return b.String()
}

func keyString(k string) string {
	if len(k) > maxKey/2 {
		return doubleQuoted(k)
	}
	return quoteString(k, false, plainStyle)
}

var topKeys = []string{"apiVersion", "kind", "metadata", "spec"}

// sortedKeys returns the keys in the order in which they are written; element reports whether the mapping is an
// element of a list.
func sortedKeys(m map[string]any, element bool) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	_, api := m["apiVersion"]
	_, kind := m["kind"]
	switch {
	case api && kind:
		keys = moveToFront(keys, topKeys...)
	case element:
		keys = moveToFront(keys, "name")
	}
	return keys
}

// moveToFront moves the listed keys that exist to the front, in place; the others keep their order.
func moveToFront(keys []string, front ...string) []string {
	at := 0
	for _, k := range front {
		if i := slices.Index(keys[at:], k); i >= 0 {
			copy(keys[at+1:at+i+1], keys[at:at+i])
			keys[at] = k
			at++
		}
	}
	return keys
}
