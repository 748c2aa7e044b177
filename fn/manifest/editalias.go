// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

// findAliasForMapping finds the anchor of an equal mapping above a block mapping, if no alias of the document names the
// anchor: an earlier edit replaced the alias by its value, and this edit restores it.
func (e *documentEditor) findAliasForMapping(n *yamlNode, want map[string]any, pl nodePlace) (string, bool) {
	if e.plain || e.anchors == nil || pl.key == nil || pl.flow || n.kind != mappingKind || n.isFlow() || n.n == 0 || n.anchor != "" || n.tag != "" {
		return "", false
	}
	for _, a := range e.anchors {
		if a.start >= n.start || e.gone[a] || len(want) == 0 {
			continue
		}
		v, ok := e.after[a]
		if !ok {
			var err error
			if v, err = e.currentValue(a); err != nil {
				continue
			}
		}
		if equalValues(v, want) {
			return a.anchor, true
		}
	}
	return "", false
}

// findAnchors collects the mappings whose anchor no alias names.
func (e *documentEditor) findAnchors(root *yamlNode) {
	named := map[string]int{}
	walkNodes(root, func(n *yamlNode) {
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
func (e *documentEditor) putAlias(n *yamlNode, name string, pl nodePlace) {
	for c := n.first; c != nil; c = c.next {
		e.recordLostAnchors(c)
	}
	floor := e.valueFloor(n, pl)
	e.replaceBytes(floor, floor, " *"+name)
	e.replaceBytes(lineEnd(e.src, floor), lineEnd(e.src, n.end), "")
}
