// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// quotedScalar is a scalar in quotes while it is read.
type quotedScalar struct {
	*textScanner
	start int
	from  int    // what precedes it is in text
	text  []byte // unescaped and folded; nil while the scalar is a part of the source
	keep  int    // blanks before this offset of text come from escapes
}

// readQuoted reads the scalar at the position in single or double quotes.
func (t *textScanner) readQuoted() string {
	quote := t.src[t.pos]
	q := quotedScalar{textScanner: t, start: t.pos, from: t.pos + 1}
	for i := q.from; i < len(t.src); {
		c := t.src[i]
		switch {
		case c == '\'' && quote == '\'' && i+1 < len(t.src) && t.src[i+1] == '\'':
			q.text = append(q.text, t.src[q.from:i+1]...)
			i += 2
			q.from = i
		case c == quote:
			t.pos = i + 1
			if q.text == nil {
				return t.src[q.from:i]
			}
			return string(append(q.text, t.src[q.from:i]...))
		case c == '\\' && quote == '"':
			q.text = append(q.text, t.src[q.from:i]...)
			i = q.readEscape(i)
			q.from, q.keep = i, len(q.text)
		case c == '\n' || c == '\r':
			q.text = trimTail(append(q.text, t.src[q.from:i]...), q.keep)
			i = q.foldBreaks(i)
			q.from, q.keep = i, len(q.text)
		default:
			i++
		}
	}
	q.failUnclosed(q.start)
	return ""
}

func (q *quotedScalar) failUnclosed(off int) {
	name := "double"
	if q.src[q.start] == '\'' {
		name = "single"
	}
	q.failUnsure(off, "the %s quote is not closed", name)
}

// trimTail removes blanks from the end of b, but not before keep, as those come from escapes.
func trimTail(b []byte, keep int) []byte {
	for len(b) > keep && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// foldBreaks reads the run of line breaks and blanks at i and returns the offset after it.
func (q *quotedScalar) foldBreaks(i int) int {
	breaks := 0
	for i < len(q.src) {
		c := q.src[i]
		if c == '\n' {
			breaks++
			q.bol = i + 1
			if isMarker(q.src[i+1:]) && q.columnOf(i+1) == 0 {
				q.failUnsure(i+1, "found a document marker in a quoted scalar")
			}
		} else if c != ' ' && c != '\t' && c != '\r' {
			break
		}
		i++
	}
	q.text = appendFolded(q.text, breaks)
	return i
}

const (
	escapeFrom = "0abt\tnvfre \"'\\NLP_/"
	escapeTo   = "\x00\a\b\t\t\n\v\f\r\x1b \"'\\"
)

// readEscape reads the escape sequence at i and returns the offset after it.
func (q *quotedScalar) readEscape(i int) int {
	if i+1 >= len(q.src) {
		q.failUnclosed(i)
	}
	c := q.src[i+1]
	switch c {
	case '\n', '\r': // an escaped line break: the blanks before it stay, and those of the next line go
		j := i + 1
		if c == '\r' {
			j++
		}
		j++
		q.bol = j
		for j < len(q.src) && (q.src[j] == ' ' || q.src[j] == '\t') {
			j++
		}
		if j < len(q.src) && (q.src[j] == '\n' || q.src[j] == '\r') {
			q.failUnsure(j, "found an empty line after an escaped line break")
		}
		return j
	case 'x', 'u', 'U':
		return q.readHexEscape(i, map[byte]int{'x': 2, 'u': 4, 'U': 8}[c])
	}
	k := strings.IndexByte(escapeFrom, c)
	if k < 0 {
		q.failUnsure(i, "found an unknown escape character %q", c)
	}
	switch c {
	case 'N':
		q.text = append(q.text, "\u0085"...)
	case 'L':
		q.text = append(q.text, "\u2028"...)
	case 'P':
		q.text = append(q.text, "\u2029"...)
	case '_':
		q.text = append(q.text, "\u00a0"...)
	case '/':
		q.text = append(q.text, '/')
	default:
		q.text = append(q.text, escapeTo[k])
	}
	return i + 2
}

// readHexEscape reads the escape of a character by its number.
func (q *quotedScalar) readHexEscape(i, digits int) int {
	r, j := q.readHex(i+2, digits), i+2+digits
	if utf16.IsSurrogate(r) { // a pair as JSON writes it
		if !strings.HasPrefix(q.src[j:], `\u`) {
			q.failUnsure(i, "found half of a surrogate pair")
		}
		r = utf16.DecodeRune(r, q.readHex(j+2, 4))
		if r == utf8.RuneError {
			q.failUnsure(i, "found half of a surrogate pair")
		}
		j += 6
	}
	if !utf8.ValidRune(r) {
		q.failUnsure(i, "found an escape of no character")
	}
	q.text = utf8.AppendRune(q.text, r)
	return j
}

func (q *quotedScalar) readHex(i, digits int) rune {
	if i+digits > len(q.src) {
		q.failUnsure(i, "found a short escape")
	}
	for _, c := range []byte(q.src[i : i+digits]) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			q.failUnsure(i, "found an escape without its digits")
		}
	}
	v, err := strconv.ParseUint(q.src[i:i+digits], 16, 32)
	if err != nil || v > utf8.MaxRune {
		q.failUnsure(i, "found an escape of no character")
	}
	return rune(v)
}
