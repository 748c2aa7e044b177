// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"
)

// editMapping edits a mapping that has entries into another that has some.
func (e *documentEditor) editMapping(n *yamlNode, want map[string]any, pl nodePlace) error {
	pairs := n.mappingPairs()
	plan := e.planMerges(pairs, want)
	keep, added, err := keptEntries(pairs, want, plan)
	if err != nil {
		return err
	}
	renamed, key := e.findRename(pairs, keep, added)
	if renamed >= 0 {
		keep[renamed] = true
	}
	if !slices.Contains(keep, true) {
		return e.replaceNode(n, want, pl)
	}
	if !n.isFlow() {
		defer e.carryElements(pairs, want)()
	}
	for i, p := range pairs {
		switch {
		case i == renamed:
			if err := e.renameEntry(p, key, added[key], nodePlace{parent: n.indent, key: p.key, dash: -1, flow: n.isFlow()}); err != nil {
				return err
			}
			delete(added, key)
		case !keep[i]:
			e.recordLostAnchors(p.key)
			e.recordLostAnchors(p.val)
		case !p.key.isMerge():
			k, _ := keyText(p.key)
			if plan.shadowed[k] {
				continue
			}
			if err := e.editNode(p.val, want[k], nodePlace{parent: n.indent, key: p.key, dash: -1, flow: n.isFlow()}); err != nil {
				return err
			}
		}
	}
	if !plan.expand { // a value that the merge already contributes is not written again
		for k, v := range plan.merged {
			if w, ok := added[k]; ok && equalValues(v, w) {
				delete(added, k)
			}
		}
	}
	if n.isFlow() {
		e.flow.flowEntries(n, pairs, keep, added)
		return nil
	}
	e.removeEntries(n, pairs, keep)
	e.appendEntries(n, added)
	return nil
}

// keptEntries reports which entries of a mapping stay, and returns what is wanted besides them.
func keptEntries(pairs []keyValue, want map[string]any, plan mergeKeys) (keep []bool, added map[string]any, err error) {
	keep, added = make([]bool, len(pairs)), copyMap(want)
	for i, p := range pairs {
		if p.key.isMerge() {
			keep[i] = !plan.expand
			continue
		}
		k, ok := keyText(p.key)
		if !ok {
			return nil, nil, &syntaxError{off: p.key.start, msg: "found a key that is not a string"}
		}
		_, keep[i] = want[k]
		delete(added, k)
	}
	return keep, added, nil
}

// appendEntries writes new entries at the end of a block mapping.
func (e *documentEditor) appendEntries(n *yamlNode, added map[string]any) {
	if len(added) == 0 {
		return
	}
	w := e.w
	w.b = strings.Builder{}
	w.growForValue(added, n.indent)
	for _, k := range sortedKeys(added, false) {
		w.writeIndent(n.indent)
		w.writeEntry(k, added[k], n.indent)
	}
	at := e.bodyEnd(n.end, n.indent)
	e.replaceBytes(at, at, w.b.String())
}
