// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// Locate returns the line and column, both from 1, of a field in the file: of its key, or of the element of a list.
// The path has strings for keys and ints for list positions; an empty path is the document. ok is false if the
// field does not exist or the document cannot be read. Fields behind an alias are found at their anchor.
func (d *Document) Locate(path ...any) (line, col int, ok bool) {
	n, err := d.parseNodes()
	if err != nil {
		return 0, 0, false
	}
	off := n.prop
	for _, p := range path {
		if n.kind == aliasKind {
			if n.foreign {
				return 0, 0, false
			}
			n = n.target
		}
		if n, off = childNode(n, p); n == nil {
			return 0, 0, false
		}
	}
	if off > len(d.text) {
		return 0, 0, false
	}
	bol := lineStart(d.text, off)
	col = off - bol + 1
	if bol == 0 {
		col += d.col0
	}
	return d.line + strings.Count(d.text[:off], "\n"), col, true
}

// childNode returns an entry of a mapping or an element of a sequence, and where it starts.
func childNode(n *yamlNode, p any) (*yamlNode, int) {
	switch p := p.(type) {
	case string:
		if n.kind != mappingKind {
			return nil, 0
		}
		var merged *yamlNode
		for k := n.first; k != nil; k = k.next.next {
			if key, _ := keyText(k); key == p && !k.isMerge() {
				return k.next, k.prop
			}
			if k.isMerge() {
				merged = k.next
			}
		}
		if merged != nil && merged.kind == aliasKind && !merged.foreign {
			return childNode(merged.target, p)
		}
	case int:
		if n.kind != sequenceKind || p < 0 {
			return nil, 0
		}
		for e := n.first; e != nil; e = e.next {
			if p == 0 {
				return e, e.prop
			}
			p--
		}
	}
	return nil, 0
}

// Entry is where an entry of a mapping begins.
type Entry struct {
	Key string
	// Line and Col of the key, or of the anchor or tag before it, are from 1. The line is that of the document's text, not of the file.
	Line, Col int
}

// Entries returns the entries of a mapping in block style in their order. Each begins in a line of its own: all
// text between two of them belongs to the first, or is a comment. The path has the keys that lead to the mapping.
// ok is false if the mapping does not exist, if an alias or a merge key contributes a part of it, or if the
// document cannot be read for certain.
func (d *Document) Entries(path ...string) (entries []Entry, ok bool) {
	n, err := d.parseNodes()
	if err != nil {
		return nil, false
	}
	if entries, ok = d.mappingEntries(n); !ok {
		return nil, false
	}
	for _, key := range path {
		n, _ = childNode(n, key)
		if entries, ok = d.mappingEntries(n); !ok {
			return nil, false
		}
	}
	return entries, true
}

// mappingEntries is Entries of a node, which may be nil.
func (d *documentText) mappingEntries(n *yamlNode) (entries []Entry, ok bool) {
	if n == nil || n.kind != mappingKind || n.isFlow() {
		return nil, false
	}
	line, at := 1, 0
	for k := n.first; k != nil; k = k.next.next {
		key, ok := keyText(k)
		if !ok || k.isMerge() {
			return nil, false
		}
		line, at = line+strings.Count(d.text[at:k.prop], "\n"), k.prop
		col := at - lineStart(d.text, at) + 1
		if line == 1 {
			col += d.col0
		}
		entries = append(entries, Entry{key, line, col})
	}
	return entries, true
}
