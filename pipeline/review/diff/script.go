// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"slices"
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

// Limits of the search for the shortest script, which cannot be canceled: the number of removed and added lines,
// and that number times the lines of both sides, which is the worst-case number of steps.
const (
	maxDiffering = 10_000
	maxSteps     = 2_000_000_000
)

// editScript returns the shortest sequence of edits that makes the new lines of the old ones (Myers' algorithm, by the
// library, over one character for each different line). Where that is too much work, all between the first and the last
// difference is one edit.
func editScript(before, after [][]byte) []lineEdit {
	a, b, ok := encodeLines(before, after)
	if !ok || !isNear(a, b) {
		return replaceMiddle(before, after, a, b)
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

// replaceMiddle keeps the lines that both begin and end with. a and b are equal where the lines are.
func replaceMiddle(before, after [][]byte, a, b []rune) []lineEdit {
	begin, end, shorter := 0, 0, min(len(a), len(b))
	for begin < shorter && a[begin] == b[begin] {
		begin++
	}
	for end < shorter-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	edits := []lineEdit{
		{equal, before[:begin]}, {remove, before[begin : len(before)-end]}, {add, after[begin : len(after)-end]},
		{equal, before[len(before)-end:]},
	}
	return slices.DeleteFunc(edits, func(e lineEdit) bool { return len(e.lines) == 0 })
}

// isNear reports whether the shortest script is within the bounds.
func isNear(a, b []rune) bool {
	lines := len(a) + len(b)
	limit := min(maxDiffering, maxSteps/max(1, lines))
	return lines <= limit || isWithin(a, b, limit)
}

// isWithin reports whether the number of lines to remove and add is within the limit. It performs the first half of
// Myers' algorithm, which counts these lines without recording them.
func isWithin(a, b []rune, limit int) bool {
	reached := make([]int, 2*limit+3) // number of lines of a, by how many more lines of a than of b were consumed
	middle := limit + 1
	for d := 0; d <= limit; d++ {
		for k := -d; k <= d; k += 2 {
			x := reached[middle+k+1]
			if removed := reached[middle+k-1] + 1; k != -d && removed > x {
				x = removed
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			if x >= len(a) && x-k >= len(b) {
				return true
			}
			reached[middle+k] = x
		}
	}
	return false
}

// encodeLines maps each distinct line to a character. It returns false if the lines outnumber the characters.
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

// slideEdits moves a run of added or removed lines up to where it begins with its least indented line, among the places
// that mean the same. Without it the diff of a list item that was put before another one begins in the middle of the
// item.
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
		edits[i+1].lines = append(append(make([][]byte, 0, best+len(after.lines)), run.lines[n-best:]...),
			after.lines...)
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
