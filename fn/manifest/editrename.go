// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

// findRename finds the entry of a mapping that another one replaces: one mapping is removed and one added, as when
// a probe gets another handler. Inside such an entry it may be a scalar, too. It returns the entry's index and the
// new key, or -1.
func (e *documentEditor) findRename(pairs []keyValue, keep []bool, added map[string]any) (int, string) {
	if len(added) != 1 || e.plain {
		return -1, ""
	}
	gone := -1
	for i, p := range pairs {
		switch {
		case p.key.isMerge(), !keep[i] && gone >= 0:
			return -1, ""
		case !keep[i]:
			gone = i
		}
	}
	if gone < 0 {
		return -1, ""
	}
	p := pairs[gone]
	for key, v := range added {
		m, _ := v.(map[string]any)
		handler := p.val.kind == mappingKind && p.val.n > 0 && len(m) > 0
		scalar := e.renaming && p.val.kind == scalarKind && !p.val.isAbsent() && isInline(v)
		if handler && sharesKey(p.val, m) || scalar {
			return gone, key
		}
	}
	return -1, ""
}

// sharesKey reports whether a mapping has a key in common with a value.
func sharesKey(n *yamlNode, want map[string]any) bool {
	for _, p := range n.mappingPairs() {
		if k, ok := keyText(p.key); ok && !p.key.isMerge() {
			if _, both := want[k]; both {
				return true
			}
		}
	}
	return false
}

// renameEntry returns an entry another key, in the style of the old one, and another value.
func (e *documentEditor) renameEntry(p keyValue, key string, want any, pl nodePlace) error {
	before := e.renaming
	e.renaming = true
	defer func() { e.renaming = before }()
	if err := e.editNode(p.val, want, pl); err != nil {
		return err
	}
	text := keyString(key)
	if keepQuotes(p.key.style) != plainStyle {
		text = quoteString(key, pl.flow, keepQuotes(p.key.style))
	}
	e.replaceBytes(p.key.start, p.key.end, text)
	return nil
}
