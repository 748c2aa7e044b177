// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"
)

// Marshal writes a value as fresh YAML: block style, two spaces, sequences not indented, no line folding, strings quoted
// where a reader of YAML 1.1 or 1.2 could take them for something else, multi-line strings as literal blocks. Keys are
// sorted, but apiVersion, kind, metadata and spec come first in an object, and name in the elements of a list. Values
// are those that Decode gives; other types go through JSON.
func Marshal(v any) []byte {
	w := writer{nl: "\n", step: 2}
	v = normal(v)
	if empty(v) {
		return []byte(w.scalar(v, 0) + "\n")
	}
	w.block(v, 0, false)
	return []byte(w.b.String())
}

// writer writes block style.
type writer struct {
	b    strings.Builder
	nl   string
	step int // indentation of mappings
	seq  int // indentation of sequences in mappings
	// carry has the texts of elements that come from elsewhere in the document.
	carry *carrier
	part  bool // the text goes between other text: no block scalars that would take empty lines after them along
}

// empty reports whether a value is written on the line of its key.
func empty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return true
}

func (w *writer) indent(n int) {
	for ; n > 0; n-- {
		w.b.WriteByte(' ')
	}
}

// block writes a collection, each line with its line break. Where inline is set the first line continues one that is
// already at the column.
func (w *writer) block(v any, col int, inline bool) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v, inline) {
			if !inline {
				w.indent(col)
			}
			inline = false
			w.entry(k, v[k], col)
		}
	case []any:
		for _, e := range v {
			w.item(e, col, inline)
			inline = false
		}
	}
}

// item writes an element of a sequence with its dash at col.
func (w *writer) item(v any, col int, inline bool) {
	if w.carry != nil && !inline {
		if head, text, ok := w.carry.text(v, col); ok {
			w.b.WriteString(head)
			w.indent(col)
			w.b.WriteString("- " + text)
			return
		}
	}
	if !inline {
		w.indent(col)
	}
	w.b.WriteByte('-')
	w.element(v, col)
}

// entry writes a key at the position and its value.
func (w *writer) entry(key string, v any, col int) {
	w.b.WriteString(keyString(key))
	w.b.WriteByte(':')
	w.after(v, col)
}

// after writes a value after a key's colon; col is the column of the key.
func (w *writer) after(v any, col int) {
	if empty(v) {
		w.b.WriteByte(' ')
		w.b.WriteString(w.scalar(v, col))
		w.b.WriteString(w.nl)
		return
	}
	w.b.WriteString(w.nl)
	if _, ok := v.([]any); ok {
		w.block(v, col+w.seq, false)
		return
	}
	w.block(v, col+w.step, false)
}

// element writes a value after a dash at col.
func (w *writer) element(v any, col int) {
	w.b.WriteByte(' ')
	if empty(v) {
		w.b.WriteString(w.scalar(v, col))
		w.b.WriteString(w.nl)
		return
	}
	w.block(v, col+2, true)
}

// scalar writes a scalar or an empty collection after an indicator; parent is the column of the collection around it.
// The line break after it is not written.
func (w *writer) scalar(v any, parent int) string {
	if s, ok := v.(string); ok {
		step := max(w.step, 1)
		if header, lines, ok := literal(s, step); ok && !(w.part && strings.Contains(header, "+")) {
			return header + w.lines(lines, parent+step)
		}
	}
	return scalarText(v, false, plainStyle)
}

// lines writes the lines of a block scalar, each with the line break before it.
func (w *writer) lines(lines []string, col int) string {
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

// sortedKeys gives the keys in the order in which they are written; element says that the mapping is in a list.
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
		keys = lift(keys, topKeys...)
	case element:
		keys = lift(keys, "name")
	}
	return keys
}

// lift moves keys to the front.
func lift(keys []string, front ...string) []string {
	out := make([]string, 0, len(keys))
	for _, k := range front {
		if slices.Contains(keys, k) {
			out = append(out, k)
		}
	}
	for _, k := range keys {
		if !slices.Contains(front, k) {
			out = append(out, k)
		}
	}
	return out
}
