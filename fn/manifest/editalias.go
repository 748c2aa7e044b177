// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

// aliasFor finds the anchor of a mapping that stands above a block mapping and is to be the same, where no alias of the
// document names the anchor: what named it was written out by an earlier edit, and is written as an alias again.
func (e *editor) aliasFor(n *node, want map[string]any, pl place) (string, bool) {
	if e.plain || e.anchors == nil || pl.key == nil || pl.flow || n.kind != mappingKind || n.flow() || n.n == 0 || n.anchor != "" || n.tag != "" {
		return "", false
	}
	for _, a := range e.anchors {
		if a.start >= n.start || e.gone[a] || len(want) == 0 {
			continue
		}
		v, ok := e.after[a]
		if !ok {
			var err error
			if v, err = e.value(a); err != nil {
				continue
			}
		}
		if equal(v, want) {
			return a.anchor, true
		}
	}
	return "", false
}

// findAnchors collects the mappings whose anchor no alias names.
func (e *editor) findAnchors(root *node) {
	named := map[string]int{}
	walk(root, func(n *node) {
		switch {
		case n.kind == aliasKind:
			named[n.val]++
		case n.anchor != "" && n.kind == mappingKind:
			e.anchors = append(e.anchors, n)
		}
	})
	kept := e.anchors[:0]
	for _, a := range e.anchors {
		if named[a.anchor] == 0 {
			kept = append(kept, a)
		}
	}
	e.anchors = kept
}

// putAlias writes an alias in the place of a block mapping below a key.
func (e *editor) putAlias(n *node, name string, pl place) {
	for c := n.first; c != nil; c = c.next {
		e.lose(c)
	}
	floor := e.valueFloor(n, pl)
	e.put(floor, floor, " *"+name)
	e.put(lineEnd(e.src, floor), lineEnd(e.src, n.end), "")
}
