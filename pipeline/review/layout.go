// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// section is a heading with pieces below it.
type section struct {
	title string
	// what the pieces are, where some are left out: "change" or "image".
	what   string
	pieces []piece
}

// piece is shown in one of its forms, or not at all.
type piece struct {
	// rank determines which pieces get room first: the lowest.
	rank int
	// forms are the texts, the longest first. The first is complete, the last the minimum.
	forms []string
	// short reports whether even the first form is incomplete: a longer one exists without limits.
	short bool
}

// noteReserves are what is kept for saying what is left out, by trial.
var noteReserves = []int{0, 400, 800, 1600}

const briefNote = "\n**Not all is here.**\n"

// layoutWithin writes sections so that they are not longer than the limit: first the shortest form of each piece by
// rank, then longer ones.
func layoutWithin(sections []section, limit int, elsewhere string) (body string, whole bool) {
	l := &layout{sections: sections}
	l.resetChosenForms()
	if limit == Unlimited {
		for i := range l.chosen {
			for j := range l.chosen[i] {
				l.chosen[i][j] = 0
			}
		}
		return l.writeChosenForms(), true
	}
	for _, spare := range noteReserves {
		l.resetChosenForms()
		l.allocatePieceForms(limit - spare)
		if l.isWhole() {
			return l.writeChosenForms(), true
		}
		if body, note := l.writeChosenForms(), l.describeOmissions(elsewhere); len(body)+len(note) <= limit && (l.size > 0 || spare == 0) {
			return body + note, false
		}
	}
	l.resetChosenForms()
	l.allocatePieceForms(limit - len(briefNote))
	return cutToLimit(l.writeChosenForms()+briefNote, limit), false
}

// cutToLimit is for limits that leave no room for a section.
func cutToLimit(body string, limit int) string {
	if len(body) <= limit {
		return body
	}
	for limit > 0 && !utf8.RuneStart(body[limit]) {
		limit--
	}
	return body[:limit]
}

type layout struct {
	sections []section
	chosen   [][]int // the form of each piece, -1 for none
	size     int
}

func (l *layout) resetChosenForms() {
	l.size, l.chosen = 0, make([][]int, len(l.sections))
	for i, s := range l.sections {
		l.chosen[i] = slices.Repeat([]int{-1}, len(s.pieces))
	}
}

// allocatePieceForms allocates room to pieces.
func (l *layout) allocatePieceForms(limit int) {
	type at struct{ section, piece int }
	var order []at
	for i, s := range l.sections {
		for j := range s.pieces {
			order = append(order, at{i, j})
		}
	}
	slices.SortStableFunc(order, func(a, b at) int {
		return l.sections[a.section].pieces[a.piece].rank - l.sections[b.section].pieces[b.piece].rank
	})
	for _, p := range order {
		s := &l.sections[p.section]
		forms := s.pieces[p.piece].forms
		size := len(forms[len(forms)-1])
		if !l.hasChosenPiece(p.section) {
			size += len(s.heading())
		}
		if l.size+size <= limit {
			l.chosen[p.section][p.piece], l.size = len(forms)-1, l.size+size
		}
	}
	for _, p := range order {
		forms := l.sections[p.section].pieces[p.piece].forms
		now := l.chosen[p.section][p.piece]
		for form := 0; form < now; form++ {
			if more := len(forms[form]) - len(forms[now]); l.size+more <= limit {
				l.chosen[p.section][p.piece], l.size = form, l.size+more
				break
			}
		}
	}
}

func (l *layout) hasChosenPiece(section int) bool {
	return slices.ContainsFunc(l.chosen[section], func(form int) bool { return form >= 0 })
}

func (s *section) heading() string {
	if s.title == "" {
		return ""
	}
	return "\n#### " + s.title + "\n"
}

func (l *layout) isWhole() bool {
	for i, s := range l.sections {
		for j, p := range s.pieces {
			if l.chosen[i][j] != 0 || p.short {
				return false
			}
		}
	}
	return true
}

func (l *layout) writeChosenForms() string {
	var out strings.Builder
	for i, s := range l.sections {
		if !l.hasChosenPiece(i) {
			continue
		}
		out.WriteString(s.heading())
		for j, form := range l.chosen[i] {
			if form >= 0 {
				out.WriteString(s.pieces[j].forms[form])
			}
		}
	}
	return out.String()
}

// describeOmissions describes what is missing.
func (l *layout) describeOmissions(elsewhere string) string {
	var parts []string
	for i, s := range l.sections {
		left, shortened := 0, 0
		for j, form := range l.chosen[i] {
			switch {
			case form < 0:
				left++
			case form > 0 || s.pieces[j].short:
				shortened++
			}
		}
		name := strings.ToLower(s.title)
		if left > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s (%s)", left, countWithNoun(len(s.pieces), s.what), name))
		}
		if shortened > 0 {
			parts = append(parts, fmt.Sprintf("lines of %s (%s)", countWithNoun(shortened, s.what), name))
		}
	}
	return fmt.Sprintf("\n**Not all is here:** left out are %s. %s\n", strings.Join(parts, ", "), elsewhere)
}

// wholeLocation describes where the whole is.
func (c *Change) wholeLocation() string {
	switch {
	case plainAddress.MatchString(c.Whole):
		return "The whole: <" + c.Whole + ">"
	case c.Whole != "":
		return "The whole: " + codeSpan(c.Whole)
	}
	return "`prerig diff -o review --limit 0` shows the whole before it is published."
}
