// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// lineScanner walks block-style YAML line by line without parsing it and stops at the lines that have structure:
// those that begin with a key or a dash. It steps over block scalars, quoted scalars, flow collections and
// continuation lines of unquoted scalars; it reports other text as unsure, and the caller parses.
type lineScanner struct {
	s      string
	pos    int // where the next line starts
	col0   int // column of the first byte of s
	unsure bool

	watch  int // start of a line whose value was read and must not go on, -1 without any
	start  int // of the current line
	off    int // its first byte that is not a space
	col    int // the column of off
	plain  int // column that the lines of an unquoted scalar exceed, -1 outside of one
	scalar int // column that the lines of a block scalar exceed, -1 outside of one
}

func newLineScanner(s string, col0 int) *lineScanner {
	return &lineScanner{s: s, col0: col0, plain: -1, scalar: -1, watch: -1}
}

// nextLine advances to the next line with structure.
func (l *lineScanner) nextLine() bool {
	for !l.unsure && l.pos < len(l.s) {
		start := l.pos
		i := start
		for i < len(l.s) && l.s[i] == ' ' {
			i++
		}
		end := strings.IndexByte(l.s[i:], '\n')
		if end < 0 {
			end = len(l.s)
		} else {
			end += i
		}
		l.pos = min(end+1, len(l.s))
		if end == len(l.s) {
			l.pos = end
		}
		col := i - start
		if start == 0 {
			col += l.col0
		}
		if i == end || l.s[i] == '\r' && i+1 == end {
			continue
		}
		if l.scalar >= 0 && col > l.scalar {
			continue
		}
		l.scalar = -1
		if l.s[i] == '#' {
			l.plain = -1
			continue
		}
		if l.plain >= 0 && col > l.plain {
			l.readContinuation(i, end)
			continue
		}
		l.plain = -1
		l.start, l.off, l.col = start, i, col
		l.scanLine(i, end, col)
		return !l.unsure
	}
	return false
}

// readContinuation reads a further line of an unquoted scalar.
func (l *lineScanner) readContinuation(i, end int) {
	if l.watch == l.start || l.s[i] == '\t' || strings.Contains(l.s[i:end], ": ") || l.s[end-1] == ':' {
		l.unsure = true
	}
	if strings.Contains(l.s[i:end], " #") {
		l.plain = -1
	}
}

// scanLine reads the indicators, key and value of a line, and steps over the further lines of its value.
func (l *lineScanner) scanLine(i, end, col int) {
	for i < end && l.s[i] == '-' && (i+1 == end || isBlankOrEnd(l.s[i+1])) { // nested entries: - - a
		j := i + 1
		for j < end && l.s[j] == ' ' {
			j++
		}
		if j == end || l.s[j] == '#' || l.s[j] == '\r' {
			return
		}
		if l.s[j] != '-' || j+1 < end && !isBlankOrEnd(l.s[j+1]) {
			if k := l.keyEnd(j, end); k >= 0 {
				l.scanValue(k, end, col+j-i)
			} else {
				l.scanValue(j, end, col)
			}
			return
		}
		col += j - i
		i = j
	}
	if k := l.keyEnd(i, end); k >= 0 {
		l.scanValue(k, end, col)
		return
	}
	l.unsure = true
}

// keyEnd returns the start of the value of a key at i, after its colon, or -1 if no plain or quoted key begins at
// i.
func (l *lineScanner) keyEnd(i, end int) int {
	s := l.s
	switch c := s[i]; c {
	case '"', '\'':
		j := strings.IndexByte(s[i+1:end], c)
		if j < 0 || strings.IndexByte(s[i+1:i+1+j], '\\') >= 0 {
			return -1
		}
		j += i + 2
		if j < end && s[j] == ':' && (j+1 == end || isBlankOrEnd(s[j+1])) {
			return j + 1
		}
		return -1
	case '{', '[', '&', '*', '!', '|', '>', '%', '@', '`', ',', ']', '}', '#', '\t':
		return -1
	case '?', ':':
		if i+1 == end || isBlankOrEnd(s[i+1]) {
			l.unsure = true
			return -1
		}
	}
	for j := i; j < end; j++ {
		switch s[j] {
		case ':':
			if j+1 == end || isBlankOrEnd(s[j+1]) {
				return j + 1
			}
		case '#':
			if s[j-1] == ' ' {
				return -1
			}
		}
	}
	return -1
}

// scanValue reads what follows a colon or dash at i; col is that of the key or of the dash.
func (l *lineScanner) scanValue(i, end, col int) {
	s := l.s
	for i < end && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	for i < end && (s[i] == '&' || s[i] == '!') { // an anchor or tag
		for i < end && !isBlankOrEnd(s[i]) {
			i++
		}
		for i < end && (s[i] == ' ' || s[i] == '\t') {
			i++
		}
		if i < end && l.keyEnd(i, end) >= 0 {
			l.unsure = true
			return
		}
	}
	if i >= end || s[i] == '#' || s[i] == '\r' {
		return
	}
	switch s[i] {
	case '|', '>':
		l.scalar = col
	case '"', '\'':
		l.continueAfterValue(quoteEnd(s, i))
	case '{', '[':
		l.continueAfterValue(flowEnd(s, i))
	case '*':
	case '-', '?', ':':
		if i+1 == end || isBlankOrEnd(s[i+1]) {
			l.unsure = true
			return
		}
		fallthrough
	default:
		if !strings.Contains(s[i:end], " #") {
			l.plain = col
		}
	}
}

// continueAfterValue continues at the line after a quoted scalar or flow collection, which must be the last of its
// line.
func (l *lineScanner) continueAfterValue(j int, ok bool) {
	if !ok {
		l.unsure = true
		return
	}
	end := lineEnd(l.s, j)
	if c := firstNonBlank(l.s[j:end]); c != 0 && c != '#' {
		l.unsure = true
		return
	}
	l.pos = end
	if end < len(l.s) {
		l.pos = strings.IndexByte(l.s[end:], '\n') + end + 1
	}
}

// quoteEnd returns the offset after the quoted scalar that starts at i.
func quoteEnd(s string, i int) (int, bool) {
	q := s[i]
	for j := i + 1; j < len(s); j++ {
		switch {
		case s[j] == '\\' && q == '"':
			j++
		case s[j] == q && q == '\'' && j+1 < len(s) && s[j+1] == q:
			j++
		case s[j] == q:
			return j + 1, true
		}
	}
	return 0, false
}

// flowEnd returns the offset after the flow collection that starts at i.
func flowEnd(s string, i int) (int, bool) {
	depth := 0
	for j := i; j < len(s); j++ {
		switch c := s[j]; c {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return j + 1, true
			}
		case '"', '\'':
			if c == '\'' && !strings.ContainsRune(" \t\n{[,:", rune(s[j-1])) {
				continue // an apostrophe inside an unquoted scalar
			}
			end, ok := quoteEnd(s, j)
			if !ok {
				return 0, false
			}
			j = end - 1
		case '#':
			if isBlankOrEnd(s[j-1]) {
				j = lineEnd(s, j)
			}
		}
	}
	return 0, false
}
