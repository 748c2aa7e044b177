// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// editKind of an edit, as a unified diff writes it at the start of a line.
type editKind byte

const (
	equal  editKind = ' '
	remove editKind = '-'
	add    editKind = '+'
)

// lineEdit is a run of lines that are kept, removed or added.
type lineEdit struct {
	kind  editKind
	lines [][]byte
}

// editScript returns the shortest sequence of edits that makes the new lines of the old ones (Myers' algorithm, by the library,
// over one character for each different line).
func editScript(before, after [][]byte) []lineEdit {
	a, b, ok := encodeLines(before, after)
	if !ok {
		return []lineEdit{{remove, before}, {add, after}}
	}
	dmp := diffmatchpatch.New()
	dmp.DiffTimeout = 0 // no clock, and the shortest script
	var edits []lineEdit
	for _, d := range dmp.DiffMainRunes(a, b, false) {
		n := utf8.RuneCountInString(d.Text)
		switch d.Type {
		case diffmatchpatch.DiffDelete:
			edits = append(edits, lineEdit{remove, before[:n]})
			before = before[n:]
		case diffmatchpatch.DiffInsert:
			edits = append(edits, lineEdit{add, after[:n]})
			after = after[n:]
		default:
			edits = append(edits, lineEdit{equal, after[:n]})
			before, after = before[n:], after[n:]
		}
	}
	return slideEdits(edits)
}

// encodeLines returns each different line a character of its own. It says false where there are more lines than characters.
func encodeLines(before, after [][]byte) (a, b []rune, ok bool) {
	seen := map[string]rune{}
	next := rune(1)
	code := func(ls [][]byte) []rune {
		runes := make([]rune, len(ls))
		for i, l := range ls {
			r, known := seen[string(l)]
			if !known {
				if next == 0xD800 { // surrogates are not characters
					next = 0xE000
				}
				if next == utf8.RuneError { // what a string makes of what is not a character
					next++
				}
				r = next
				seen[string(l)] = r
				next++
			}
			runes[i] = r
		}
		return runes
	}
	a, b = code(before), code(after)
	return a, b, next <= utf8.MaxRune
}

// slideEdits moves a run of added or removed lines up to where it begins with its least indented line, among the places that
// mean the same. Without it the diff of a list item that was put before another one begins in the middle of the item.
func slideEdits(edits []lineEdit) []lineEdit {
	for i := 1; i+1 < len(edits); i++ {
		before, run, after := edits[i-1], edits[i], edits[i+1]
		if before.kind != equal || after.kind != equal || run.kind == equal {
			continue
		}
		best, least := 0, indentWidth(run.lines[0])
		n := len(run.lines)
		for up := 1; up <= len(before.lines) && up < n; up++ {
			// Moving up by one is possible while the line above the run equals its last line.
			if !bytes.Equal(before.lines[len(before.lines)-up], run.lines[n-up]) {
				break
			}
			if in := indentWidth(run.lines[n-up]); in < least {
				best, least = up, in
			}
		}
		if best == 0 || best == len(before.lines) {
			continue
		}
		moved := before.lines[len(before.lines)-best:]
		edits[i-1].lines = before.lines[:len(before.lines)-best]
		edits[i].lines = append(append(make([][]byte, 0, n), moved...), run.lines[:n-best]...)
		edits[i+1].lines = append(append(make([][]byte, 0, best+len(after.lines)), run.lines[n-best:]...), after.lines...)
	}
	return edits
}

// indentWidth counts the blanks at the start of a line. An empty line has more than any.
func indentWidth(line []byte) int {
	trimmed := bytes.TrimLeft(line, " ")
	if len(bytes.TrimRight(trimmed, "\r\n")) == 0 {
		return 1 << 20
	}
	return len(line) - len(trimmed)
}
