// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// mapping edits a mapping that has entries into another that has some.
func (e *editor) mapping(n *node, want map[string]any, pl place) error {
	pairs := n.pairs()
	plan := e.planMerges(pairs, want)
	keep := make([]bool, len(pairs))
	kept := 0
	added := copyMap(want)
	for i, p := range pairs {
		if p.key.isMerge() {
			keep[i] = !plan.expand
		} else {
			k, ok := keyText(p.key)
			if !ok {
				return &syntaxError{off: p.key.start, msg: "found a key that is not a string"}
			}
			_, keep[i] = want[k]
			delete(added, k)
		}
		if keep[i] {
			kept++
		}
	}
	renamed, key := e.renames(pairs, keep, added)
	if renamed >= 0 {
		keep[renamed], kept = true, kept+1
	}
	if kept == 0 {
		return e.replace(n, want, pl)
	}
	if !n.flow() {
		defer e.carrying(pairs, want)()
	}
	for i, p := range pairs {
		switch {
		case i == renamed:
			if err := e.rename(p, key, added[key], place{parent: n.indent, key: p.key, dash: -1, flow: n.flow()}); err != nil {
				return err
			}
			delete(added, key)
		case !keep[i]:
			e.lose(p.key)
			e.lose(p.val)
		case !p.key.isMerge():
			k, _ := keyText(p.key)
			if plan.shadowed[k] {
				continue
			}
			if err := e.node(p.val, want[k], place{parent: n.indent, key: p.key, dash: -1, flow: n.flow()}); err != nil {
				return err
			}
		}
	}
	if !plan.expand { // what the merge gives already is not written again
		for k, v := range plan.merged {
			if w, ok := added[k]; ok && equal(v, w) {
				delete(added, k)
			}
		}
	}
	if n.flow() {
		e.flowEntries(n, pairs, keep, added)
		return nil
	}
	e.removeEntries(n, pairs, keep)
	e.appendEntries(n, added)
	return nil
}

// merges says what the merge keys of a mapping give and whether they can stay.
type merges struct {
	merged   map[string]any
	shadowed map[string]bool // own keys that a later merge key overwrites with the wanted value
	expand   bool
}

// planMerges decides whether the merge keys of a mapping can stay: every key that they give must be wanted, and own keys
// can only change after them.
func (e *editor) planMerges(pairs []pair, want map[string]any) merges {
	plan := merges{merged: map[string]any{}, shadowed: map[string]bool{}}
	own := map[string]bool{}
	dec := decoder{}
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
		dec.instead = func(n *node) (any, bool) {
			if e.gone[n] {
				return goneValue{}, true
			}
			v, ok := e.after[n]
			return v, ok
		}
		if err := dec.merge(p.val, got); err != nil {
			plan.expand = true
			continue
		}
		for k, v := range got {
			plan.merged[k] = v
			w, ok := want[k]
			if !ok || own[k] && !equal(v, w) {
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

// atLineStart reports whether only blanks stand before off in its line. The first line of a list element continues the
// line of its dash.
func (e *editor) atLineStart(off int) bool {
	bol := lineStart(e.src, off)
	if bol == 0 && e.d.col0 > 0 {
		return false
	}
	return strings.Trim(e.src[bol:off], " ") == "" || bol == 0 && strings.Trim(e.src[3:max(off, 3)], " ") == "" && strings.HasPrefix(e.src, "\ufeff")
}

// removeEntries takes entries out of a block mapping, each with the comments directly above it. The comments above the
// first of the last entries stay: new entries are written below the comments that end a mapping, so these are more likely
// what the user wrote there than a note on what goes.
func (e *editor) removeEntries(n *node, pairs []pair, keep []bool) {
	i := 0
	if !e.atLineStart(pairs[0].key.prop) && !keep[0] { // the first line is that of a dash: the next entry moves up
		for !keep[i] {
			i++
		}
		e.put(pairs[0].key.prop, e.firstToken(pairs[i-1].val.end), "")
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
		e.put(start, e.bodyEnd(pairs[i].val.end, n.indent+1), "")
	}
}

// firstToken gives the next comment line or token after the line of off.
func (e *editor) firstToken(off int) int {
	i := lineEnd(e.src, off)
	for i < len(e.src) && blankz(e.src[i]) {
		i++
	}
	return i
}

// appendEntries writes new entries at the end of a block mapping.
func (e *editor) appendEntries(n *node, added map[string]any) {
	if len(added) == 0 {
		return
	}
	w := e.w
	w.b = strings.Builder{}
	for _, k := range sortedKeys(added, false) {
		w.indent(n.indent)
		w.entry(k, added[k], n.indent)
	}
	at := e.bodyEnd(n.end, n.indent)
	e.put(at, at, w.b.String())
}

// headStart gives the start of the lines of comment that stand directly above the token at off, at its column, or of
// its own line without any. It never goes above the line of floor.
func (e *editor) headStart(off, floor int) int {
	bol := lineStart(e.src, off)
	col := off - bol
	start := bol
	for start > 0 {
		prev := lineStart(e.src, start-1)
		l := e.src[prev:start]
		if prev <= floor || first(l) != '#' || strings.IndexByte(l, '#') != col || prev == 0 && e.d.col0 > 0 {
			break
		}
		start = prev
	}
	return start
}

// bodyEnd gives the end of the lines of a node that ends at off: its last line, and the comments directly below that
// are at the column or deeper and do not belong to what follows.
func (e *editor) bodyEnd(off, col int) int {
	end := e.nextLine(off)
	type comment struct{ end, col int }
	var run []comment
	i := end
	for i < len(e.src) {
		next := e.nextLine(i)
		l := e.src[i:next]
		if first(l) != '#' {
			if c := first(l); c != 0 { // what follows directly owns the comments at its column
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

// nextLine gives the start of the line after that of off, or the end of the text.
func (e *editor) nextLine(off int) int {
	i := strings.IndexByte(e.src[off:], '\n')
	if i < 0 {
		return len(e.src)
	}
	return off + i + 1
}
