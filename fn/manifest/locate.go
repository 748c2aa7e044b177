// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// Locate returns the line and column, both from 1, of a field in the file: of its key, or of the element of a list. The
// path has strings for keys and ints for list positions; an empty path is the document. ok is false where there is no
// such field, or the document cannot be read. Fields behind an alias are found at their anchor.
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
