// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"
)

// sourceText is the text of a document, as lines with comments around nodes.
type sourceText struct {
	src  string
	col0 int    // column of its first byte
	nl   string // its line breaks
}

// atLineStart reports whether only blanks precede off in its line. The first line of a list element continues the
// line of its dash.
func (t *sourceText) atLineStart(off int) bool {
	bol := lineStart(t.src, off)
	if bol == 0 && t.col0 > 0 {
		return false
	}
	before := t.src[bol:off]
	if bol == 0 {
		before = strings.TrimPrefix(before, "\ufeff")
	}
	return strings.Trim(before, " ") == ""
}

// indentBefore returns the blanks at the start of the line of off, as far as they precede it.
func (t *sourceText) indentBefore(off int) string {
	line := t.src[lineStart(t.src, off):off]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// firstToken returns the next comment line or token after the line of off.
func (t *sourceText) firstToken(off int) int {
	i := lineEnd(t.src, off)
	for i < len(t.src) && isBlankOrEnd(t.src[i]) {
		i++
	}
	return i
}

// headStart returns the start of the comment lines directly above the token at off, at its column, or the start of
// the token's own line if it has none. It never moves above the line of floor.
func (t *sourceText) headStart(off, floor int) int {
	bol := lineStart(t.src, off)
	col := off - bol
	start := bol
	for start > 0 {
		prev := lineStart(t.src, start-1)
		l := t.src[prev:start]
		if prev <= floor || firstNonBlank(l) != '#' || strings.IndexByte(l, '#') != col || prev == 0 && t.col0 > 0 {
			break
		}
		start = prev
	}
	return start
}

// bodyEnd returns the end of the lines of a node that ends at off: its last line, and the comments directly below that
// are at the column or deeper and do not belong to what follows.
func (t *sourceText) bodyEnd(off, col int) int {
	end := t.nextLine(off)
	type comment struct{ end, col int }
	var run []comment
	i := end
	for i < len(t.src) {
		next := t.nextLine(i)
		l := t.src[i:next]
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
func (t *sourceText) nextLine(off int) int {
	i := strings.IndexByte(t.src[off:], '\n')
	if i < 0 {
		return len(t.src)
	}
	return off + i + 1
}

// isOnOwnLine reports whether a value is on a line of its own below its key, as Helm charts print an empty map. It
// stays flow style: a block that becomes empty again would not show that the value was not beside the key.
func (t *sourceText) isOnOwnLine(n *yamlNode, start int, pl nodePlace) bool {
	return pl.key != nil && n.isFlow() && !t.sameLine(t.valueFloor(n, pl), start)
}

// blockHeader returns the indicators of a block scalar.
func (t *sourceText) blockHeader(n *yamlNode) string {
	h := t.src[n.start:lineEnd(t.src, n.start)]
	if i := strings.IndexAny(h, " \t"); i >= 0 {
		h = h[:i]
	}
	return h
}

// headerComment returns the comment after the indicator of a block scalar, with the blanks before it.
func (t *sourceText) headerComment(n *yamlNode) string {
	h := t.src[n.start:lineEnd(t.src, n.start)]
	if i := strings.Index(h, "#"); i > 0 {
		return h[len(strings.TrimRight(h[:i], " \t")):]
	}
	return ""
}

// valueFloor returns where the text before a value ends: after the colon, the dash, or the properties.
func (t *sourceText) valueFloor(n *yamlNode, pl nodePlace) int {
	switch {
	case n.prop < n.start && n.tag == "":
		return n.prop + 1 + len(n.anchor)
	case pl.key != nil:
		return pl.key.colon
	case pl.dash >= 0:
		return pl.dash + 1
	}
	return lineStart(t.src, n.start)
}

func (t *sourceText) sameLine(a, b int) bool {
	return !strings.Contains(t.src[min(a, b):max(a, b)], "\n")
}

func (t *sourceText) columnOf(off int) int {
	bol := lineStart(t.src, off)
	if bol == 0 {
		return off + t.col0
	}
	return off - bol
}

// elementRegion returns the lines of an element of a block sequence, with the comments that belong to it.
func (t *sourceText) elementRegion(old []*yamlNode, i, col int) (start, end int) {
	floor := -1
	if i > 0 {
		floor = old[i-1].end
	}
	return t.headStart(old[i].colon, floor), t.bodyEnd(old[i].end, col+1)
}

// textEdit replaces bytes of a text.
type textEdit struct {
	start, end int
	text       string
}

// editedText is a text with the edits that are made to it.
type editedText struct {
	sourceText
	edits []textEdit
}

func (t *editedText) replaceBytes(start, end int, text string) {
	if start == end && text == "" {
		return
	}
	t.edits = append(t.edits, textEdit{start, end, text})
}

// editsOf returns the edits that do makes, and takes them back: they are for a copy of a part of the text.
func (t *editedText) editsOf(do func() error) ([]textEdit, error) {
	saved := t.edits
	t.edits = nil
	err := do()
	made := t.edits
	t.edits = saved
	return made, err
}

// trimBlankLines removes the blanks from the empty lines that follow the written text, or the lines themselves if drop
// is set.
func (t *editedText) trimBlankLines(drop bool) {
	for _, ed := range slices.Clone(t.edits) {
		at := ed.end
		wholeLines := at == 0 || t.src[at-1] == '\n' // are replaced
		if !wholeLines || ed.text != "" && !strings.HasSuffix(ed.text, "\n") {
			at = t.nextLine(at)
		}
		for at < len(t.src) {
			end := lineEnd(t.src, at)
			if firstNonBlank(t.src[at:end]) != 0 {
				break
			}
			if drop {
				end = t.nextLine(at)
			}
			t.replaceBytes(at, end, "")
			at = t.nextLine(at)
		}
	}
}

// removeEntries removes entries from a block mapping, each with the comments directly above it. If the last entries
// are removed, the comments above the first of them stay: new entries are written below the comments that end a
// mapping, so these are more likely the user's own than a note on a removed entry.
func (t *editedText) removeEntries(n *yamlNode, pairs []keyValue, keep []bool) {
	i := 0
	if !t.atLineStart(pairs[0].key.prop) && !keep[0] { // the first line is that of a dash: the next entry moves up
		for !keep[i] {
			i++
		}
		t.replaceBytes(pairs[0].key.prop, t.firstToken(pairs[i-1].val.end), "")
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
		start := lineStart(t.src, pairs[i].key.prop)
		if i != tail {
			start = t.headStart(pairs[i].key.prop, floor)
		}
		t.replaceBytes(start, t.bodyEnd(pairs[i].val.end, n.indent+1), "")
	}
}

// blockElements removes elements from a block sequence and inserts others.
func (t *editedText) blockElements(n *yamlNode, old []*yamlNode, texts []string, stay map[int]int) {
	at := make(map[int]int, len(stay)) // new position to old
	for i, j := range stay {
		at[j] = i
	}
	firstOld := -1
	for i := range old {
		if _, in := stay[i]; in && firstOld < 0 {
			firstOld = i
		}
	}
	front, _ := t.elementRegion(old, firstOld, n.indent)
	pos := front
	for j, text := range texts {
		if i, in := at[j]; in {
			pos = t.bodyEnd(old[i].end, n.indent+1)
			if i == len(old)-1 {
				pos = t.bodyEnd(old[i].end, n.indent)
			}
			continue
		}
		t.replaceBytes(pos, pos, text)
	}
	for i := range old {
		if _, in := stay[i]; !in {
			start, end := t.elementRegion(old, i, n.indent)
			t.replaceBytes(start, end, "")
		}
	}
}

// applyToText returns src[from:to] with the edits applied, which must not overlap. Insertions at one place keep
// their order and precede a replacement there.
func applyToText(src string, edits []textEdit, from, to int) string {
	slices.SortStableFunc(edits, func(a, b textEdit) int {
		if a.start != b.start || (a.start == a.end) == (b.start == b.end) {
			return a.start - b.start
		}
		if a.start == a.end {
			return -1
		}
		return 1
	})
	var b strings.Builder
	size := to - from
	for _, ed := range edits {
		size += len(ed.text)
	}
	b.Grow(size)
	at := from
	for _, ed := range edits {
		if ed.start < at { // inside a part that is already replaced
			continue
		}
		b.WriteString(src[at:ed.start])
		b.WriteString(ed.text)
		at = ed.end
	}
	b.WriteString(src[at:to])
	return b.String()
}
