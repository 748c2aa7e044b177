// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// kind of an edit, as a unified diff writes it at the start of a line.
type kind byte

const (
	equal  kind = ' '
	remove kind = '-'
	add    kind = '+'
)

// edit is a run of lines that are kept, removed or added.
type edit struct {
	kind  kind
	lines [][]byte
}

// script returns the shortest sequence of edits that makes the new lines of the old ones (Myers' algorithm, by the library,
// over one character for each different line).
func script(before, after [][]byte) []edit {
	a, b, ok := encode(before, after)
	if !ok {
		return []edit{{remove, before}, {add, after}}
	}
	dmp := diffmatchpatch.New()
	dmp.DiffTimeout = 0 // no clock, and the shortest script
	var edits []edit
	for _, d := range dmp.DiffMainRunes(a, b, false) {
		n := utf8.RuneCountInString(d.Text)
		switch d.Type {
		case diffmatchpatch.DiffDelete:
			edits = append(edits, edit{remove, before[:n]})
			before = before[n:]
		case diffmatchpatch.DiffInsert:
			edits = append(edits, edit{add, after[:n]})
			after = after[n:]
		default:
			edits = append(edits, edit{equal, after[:n]})
			before, after = before[n:], after[n:]
		}
	}
	return slide(edits)
}

// encode returns each different line a character of its own. It says false where there are more lines than characters.
func encode(before, after [][]byte) (a, b []rune, ok bool) {
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

// slide moves a run of added or removed lines up to where it begins with its least indented line, among the places that
// mean the same. Without it the diff of a list item that was put before another one begins in the middle of the item.
func slide(edits []edit) []edit {
	for i := 1; i+1 < len(edits); i++ {
		before, run, after := edits[i-1], edits[i], edits[i+1]
		if before.kind != equal || after.kind != equal || run.kind == equal {
			continue
		}
		best, least := 0, indent(run.lines[0])
		n := len(run.lines)
		for up := 1; up <= len(before.lines) && up < n; up++ {
			// Moving up by one is possible while the line above the run equals its last line.
			if !bytes.Equal(before.lines[len(before.lines)-up], run.lines[n-up]) {
				break
			}
			if in := indent(run.lines[n-up]); in < least {
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

// indent counts the blanks at the start of a line. An empty line has more than any.
func indent(line []byte) int {
	trimmed := bytes.TrimLeft(line, " ")
	if len(bytes.TrimRight(trimmed, "\r\n")) == 0 {
		return 1 << 20
	}
	return len(line) - len(trimmed)
}
