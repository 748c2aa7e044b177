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
		e.flowEntries(n, pairs, keep, added)
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

// mergeKeys holds the values that the merge keys of a mapping contribute, and whether the keys can stay.
type mergeKeys struct {
	merged   map[string]any
	shadowed map[string]bool // own keys that a later merge key overwrites with the wanted value
	expand   bool
}

// planMerges decides whether the merge keys of a mapping can stay: every key that they contribute must be wanted,
// and the mapping's own keys can only change after them.
func (e *documentEditor) planMerges(pairs []keyValue, want map[string]any) mergeKeys {
	plan := mergeKeys{merged: map[string]any{}, shadowed: map[string]bool{}}
	own := map[string]bool{}
	dec := nodeDecoder{}
	for _, p := range pairs {
		if !p.key.isMerge() {
			if k, ok := keyText(p.key); ok {
				own[k] = true
			}
			continue
		}
		if e.expand {
			plan.expand = true
		}
		got := map[string]any{}
		dec.instead = func(n *yamlNode) (any, bool) {
			if e.gone[n] {
				return goneValue{}, true
			}
			v, ok := e.after[n]
			return v, ok
		}
		if err := dec.mergeInto(p.val, got); err != nil {
			plan.expand = true
			continue
		}
		for k, v := range got {
			plan.merged[k] = v
			w, ok := want[k]
			if !ok || own[k] && !equalValues(v, w) {
				plan.expand = true
			}
			if own[k] {
				plan.shadowed[k] = true
			}
		}
	}
	if plan.expand {
		plan.shadowed = nil
	}
	for _, p := range pairs { // an own key after the merge key decides
		if k, _ := keyText(p.key); own[k] && !plan.shadowed[k] {
			delete(plan.merged, k)
		}
	}
	return plan
}

// atLineStart reports whether only blanks precede off in its line. The first line of a list element continues the
// line of its dash.
func (e *documentEditor) atLineStart(off int) bool {
	bol := lineStart(e.src, off)
	if bol == 0 && e.d.col0 > 0 {
		return false
	}
	return strings.Trim(e.src[bol:off], " ") == "" || bol == 0 && strings.Trim(e.src[3:max(off, 3)], " ") == "" && strings.HasPrefix(e.src, "\ufeff")
}

// removeEntries removes entries from a block mapping, each with the comments directly above it. If the last entries
// are removed, the comments above the first of them stay: new entries are written below the comments that end a
// mapping, so these are more likely the user's own than a note on a removed entry.
func (e *documentEditor) removeEntries(n *yamlNode, pairs []keyValue, keep []bool) {
	i := 0
	if !e.atLineStart(pairs[0].key.prop) && !keep[0] { // the first line is that of a dash: the next entry moves up
		for !keep[i] {
			i++
		}
		e.replaceBytes(pairs[0].key.prop, e.firstToken(pairs[i-1].val.end), "")
	}
	tail := len(pairs)
	for tail > 0 && !keep[tail-1] {
		tail--
	}
	for ; i < len(pairs); i++ {
		if keep[i] {
			continue
		}
		floor := -1
		if i > 0 {
			floor = pairs[i-1].val.end
		}
		start := lineStart(e.src, pairs[i].key.prop)
		if i != tail {
			start = e.headStart(pairs[i].key.prop, floor)
		}
		e.replaceBytes(start, e.bodyEnd(pairs[i].val.end, n.indent+1), "")
	}
}

// firstToken returns the next comment line or token after the line of off.
func (e *documentEditor) firstToken(off int) int {
	i := lineEnd(e.src, off)
	for i < len(e.src) && isBlankOrEnd(e.src[i]) {
		i++
	}
	return i
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

// headStart returns the start of the comment lines directly above the token at off, at its column, or the start of
// the token's own line if it has none. It never moves above the line of floor.
func (e *documentEditor) headStart(off, floor int) int {
	bol := lineStart(e.src, off)
	col := off - bol
	start := bol
	for start > 0 {
		prev := lineStart(e.src, start-1)
		l := e.src[prev:start]
		if prev <= floor || firstNonBlank(l) != '#' || strings.IndexByte(l, '#') != col || prev == 0 && e.d.col0 > 0 {
			break
		}
		start = prev
	}
	return start
}

// bodyEnd returns the end of the lines of a node that ends at off: its last line, and the comments directly below that
// are at the column or deeper and do not belong to what follows.
func (e *documentEditor) bodyEnd(off, col int) int {
	end := e.nextLine(off)
	type comment struct{ end, col int }
	var run []comment
	i := end
	for i < len(e.src) {
		next := e.nextLine(i)
		l := e.src[i:next]
		if firstNonBlank(l) != '#' {
			if c := firstNonBlank(l); c != 0 { // what follows directly owns the comments at its column
				follow := strings.IndexByte(l, c)
				for len(run) > 0 && run[len(run)-1].col == follow {
					run = run[:len(run)-1]
				}
			}
			break
		}
		run = append(run, comment{next, strings.IndexByte(l, '#')})
		i = next
	}
	for _, c := range run {
		if c.col < col {
			break
		}
		end = c.end
	}
	return end
}

// nextLine returns the start of the line after that of off, or the end of the text.
func (e *documentEditor) nextLine(off int) int {
	i := strings.IndexByte(e.src[off:], '\n')
	if i < 0 {
		return len(e.src)
	}
	return off + i + 1
}
