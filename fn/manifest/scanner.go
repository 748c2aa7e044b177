// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"
)

// textScanner reads the characters of a text, and tracks the position and its line. It panics with a syntaxError for
// text that it does not expect.
type textScanner struct {
	src   string
	pos   int
	bol   int  // offset of the line that pos is in
	col0  int  // column of the first byte of src
	fresh bool // the token at pos is the first of its line
}

func (t *textScanner) failUnsure(off int, format string, args ...any) {
	panic(&syntaxError{off: off, msg: fmt.Sprintf(format, args...), unsure: true})
}

// checkBreaks reports line breaks that only YAML 1.1 has as unsure: NEL, LS, PS and a lone carriage return.
func (t *textScanner) checkBreaks() {
	for i := strings.IndexByte(t.src, '\r'); i >= 0; {
		if i+1 == len(t.src) || t.src[i+1] != '\n' {
			t.failUnsure(i, "found a carriage return without a line feed; save the file with line feeds at the ends of lines (LF)")
		}
		j := strings.IndexByte(t.src[i+1:], '\r')
		if j < 0 {
			break
		}
		i += 1 + j
	}
	for _, s := range [...]string{"\u0085", "\u2028", "\u2029", "\ufeff"} {
		if i := strings.Index(t.src, s); i > 0 || i == 0 && s != "\ufeff" {
			t.failUnsure(i, "found the line break or byte order mark %+q", s)
		}
	}
}

// peekByte returns the byte i after the position, and 0 after the end.
func (t *textScanner) peekByte(i int) byte {
	if t.pos+i < len(t.src) {
		return t.src[t.pos+i]
	}
	return 0
}

func (t *textScanner) currentColumn() int { return t.columnOf(t.pos) }

func (t *textScanner) columnOf(off int) int {
	if t.bol == 0 {
		return off + t.col0
	}
	return off - t.bol
}

// remainingText is the text at the position, for messages.
func (t *textScanner) remainingText() string {
	s := t.src[t.pos:lineEnd(t.src, t.pos)]
	if s == "" && t.pos >= len(t.src) {
		return "the end of the document"
	} else if s == "" {
		return "the end of the line"
	}
	if len(s) > 20 {
		s = s[:20] + "…"
	}
	return fmt.Sprintf("%q", s)
}

func (t *textScanner) atMarker() bool {
	return t.pos == t.bol && t.columnOf(t.pos) == 0 && isMarker(t.src[t.pos:])
}

// skipSpace advances to the next token of block context over blanks, comments and line breaks, and records whether
// the token is the first of its line.
func (t *textScanner) skipSpace() {
	for {
		for t.peekByte(0) == ' ' || t.peekByte(0) == '\t' && !t.fresh {
			t.pos++
		}
		c := t.peekByte(0)
		switch {
		case c == '#' && (t.pos == 0 || t.fresh || t.src[t.pos-1] == ' ' || t.src[t.pos-1] == '\t'):
			t.pos = lineEnd(t.src, t.pos)
		case c == '\n', c == '\r':
			if c == '\r' {
				t.pos++
			}
			t.pos++
			t.bol = t.pos
			t.fresh = true
		case c == '\t':
			t.failUnsure(t.pos, "found a tab where the indentation must be spaces")
		default:
			return
		}
	}
}

// flowSpace skips blanks, line breaks and comments inside a flow collection.
func (t *textScanner) flowSpace() {
	for {
		c := t.peekByte(0)
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			t.pos++
		case c == '\n':
			t.pos++
			t.bol = t.pos
			if t.atMarker() {
				t.failUnsure(t.pos, "found a document marker inside a flow collection")
			}
		case c == '#' && t.pos > 0 && isBlankOrEnd(t.src[t.pos-1]):
			t.pos = lineEnd(t.src, t.pos)
		default:
			return
		}
	}
}

// nextLine advances past the line break at the position.
func (t *textScanner) nextLine() {
	if t.peekByte(0) == '\r' {
		t.pos++
	}
	if t.peekByte(0) == '\n' {
		t.pos++
		t.bol = t.pos
	}
}

// keyFollows reports whether what was just read from start is a key: a colon follows on the same line.
func (t *textScanner) keyFollows(start int) bool {
	i := t.pos
	for i < len(t.src) && (t.src[i] == ' ' || t.src[i] == '\t') {
		i++
	}
	if i >= len(t.src) || t.src[i] != ':' || i+1 < len(t.src) && !isBlankOrEnd(t.src[i+1]) {
		return false
	}
	if i-start > maxKey || t.bol > start {
		t.failUnsure(start, "found a key that is too long or spans lines")
	}
	t.pos = i
	return true
}

// readName reads the name of an anchor or alias.
func (t *textScanner) readName() string {
	i := t.pos + 1
	for i < len(t.src) {
		c := t.src[i]
		if !(c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z') {
			break
		}
		i++
	}
	s := t.src[t.pos+1 : i]
	if s == "" {
		t.failUnsure(t.pos, "expected a name after %q", t.src[t.pos:t.pos+1])
	}
	t.pos = i
	return s
}

// hasEnded reports whether no node follows: the next token belongs to an outer collection.
func (t *textScanner) hasEnded(indent int, ctx nodeContext) bool {
	if t.pos >= len(t.src) || t.atMarker() {
		return true
	}
	if !t.fresh || t.currentColumn() > indent {
		return false
	}
	return ctx != ctxValue || t.currentColumn() < indent || t.peekByte(0) != '-' || !isBlankOrEnd(t.peekByte(1))
}

// continuesAt advances to the next token and reports whether the block collection at a column continues with it.
// part names the collection's parts in messages.
func (t *textScanner) continuesAt(column int, part string) bool {
	t.skipSpace()
	if t.pos >= len(t.src) || t.atMarker() {
		return false
	}
	if !t.fresh {
		t.failUnsure(t.pos, "did not expect %s here", t.remainingText())
	}
	if t.currentColumn() > column {
		t.failUnsure(t.pos, "found %s that is indented more than its neighbours", part)
	}
	return t.currentColumn() == column
}

func isBlankOrEnd(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == 0 }

// isMarker reports whether the line at s is a document start or end.
func isMarker(s string) bool {
	return len(s) >= 3 && (s[:3] == "---" || s[:3] == "...") && (len(s) == 3 || isBlankOrEnd(s[3]))
}

// lineEnd returns the offset of the line break (or the end of the text) after off; the carriage return of a CRLF counts
// as part of the break.
func lineEnd(s string, off int) int {
	i := strings.IndexByte(s[off:], '\n')
	if i < 0 {
		return len(s)
	}
	i += off
	if i > off && s[i-1] == '\r' {
		i--
	}
	return i
}

// lineStart returns the offset of the first byte of the line of off.
func lineStart(s string, off int) int {
	for off > 0 && s[off-1] != '\n' {
		off--
	}
	return off
}
