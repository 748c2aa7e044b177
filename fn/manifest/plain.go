// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

// readPlain reads an unquoted scalar of block context. If keyOK is set it ends at the colon of a key.
func (t *textScanner) readPlain(indent int, keyOK bool) string {
	t.plainStart(false)
	start := t.pos
	end, stop := t.plainLine(start)
	t.pos = end
	if stop == ':' && !keyOK {
		t.failUnsure(end, "mapping values are not allowed here; is the line indented as its neighbours, and a text with a colon in quotes?")
	}
	if stop != 0 {
		return t.src[start:end]
	}
	return t.foldLines(t.src[start:end], indent)
}

func (t *textScanner) plainStart(flow bool) {
	c, d := t.peekByte(0), t.peekByte(1)
	bad := false
	switch c {
	case ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`', 0:
		bad = true
	case '-':
		bad = isBlankOrEnd(d)
	case '?', ':':
		bad = flow || isBlankOrEnd(d)
	}
	if bad {
		t.failUnsure(t.pos, "did not expect %s here", t.remainingText())
	}
}

// plainLine finds where the unquoted text from i ends in its line, and whether a comment (#), a colon or the line's end
// (0) ends it.
func (t *textScanner) plainLine(i int) (end int, stop byte) {
	s := t.src
	end = i
	for i < len(s) {
		switch c := s[i]; c {
		case ' ', '\t':
			i++
			continue
		case '\n', '\r':
			return end, 0
		case '#':
			if i > 0 && (s[i-1] == ' ' || s[i-1] == '\t') {
				return end, '#'
			}
		case ':':
			if i+1 >= len(s) || isBlankOrEnd(s[i+1]) {
				return end, ':'
			}
		}
		i++
		end = i
	}
	return end, 0
}

// foldLines folds the further lines of an unquoted scalar of block context into its first.
func (t *textScanner) foldLines(first string, indent int) string {
	var b []byte
	for {
		i, bol, breaks := t.pos, t.bol, 0
		for i < len(t.src) {
			if c := t.src[i]; c == '\n' {
				breaks++
				bol = i + 1
			} else if c == '\t' && breaks > 0 {
				t.failUnsure(i, "found a tab in the indentation of a scalar")
			} else if c != ' ' && c != '\r' && c != '\t' {
				break
			}
			i++
		}
		if breaks == 0 || i >= len(t.src) || i-bol <= indent || t.src[i] == '#' || i == bol && isMarker(t.src[i:]) {
			break
		}
		end, stop := t.plainLine(i)
		if stop == ':' {
			t.failUnsure(end, "mapping values are not allowed here; is the line indented as its neighbours, and a text with a colon in quotes?")
		}
		if b == nil {
			b = append(b, first...)
		}
		b = appendFolded(b, breaks)
		b = append(b, t.src[i:end]...)
		t.pos, t.bol = end, bol
		if stop == '#' {
			break
		}
	}
	if b == nil {
		return first
	}
	return string(b)
}

// readFlowPlain reads an unquoted scalar inside a flow collection. column is that of the block collection around it.
func (t *textScanner) readFlowPlain(column int) string {
	t.plainStart(true)
	s := t.src
	i, end, breaks := t.pos, t.pos, 0
	var b []byte
	from := i
scan:
	for i < len(s) {
		switch c := s[i]; c {
		case ',', '[', ']', '{', '}':
			break scan
		case '?':
			t.failUnsure(i, "found a question mark in an unquoted scalar of a flow collection; put it in quotes")
		case ':':
			if i+1 >= len(s) || isBlankOrEnd(s[i+1]) {
				break scan
			}
		case '#':
			if isBlankOrEnd(s[i-1]) {
				break scan
			}
		case ' ', '\t', '\r':
			if c == '\t' && breaks > 0 && t.columnOf(i) <= column {
				t.failUnsure(i, "found a tab in the indentation of a scalar")
			}
			i++
			continue
		case '\n':
			breaks++
			t.bol = i + 1
			i++
			continue
		}
		if breaks > 0 {
			if t.columnOf(i) == 0 && isMarker(s[i:]) {
				t.failUnsure(i, "found a document marker inside a flow collection")
			}
			b = appendFolded(append(b, s[from:end]...), breaks)
			from, breaks = i, 0
		}
		i++
		end = i
	}
	t.pos = end
	if breaks > 0 { // the breaks after the scalar are read again
		t.bol = lineStart(s, end)
	}
	if b == nil {
		return s[from:end]
	}
	return string(append(b, s[from:end]...))
}

// appendFolded appends the folded form of a run of line breaks inside a scalar.
func appendFolded(b []byte, breaks int) []byte {
	if breaks == 1 {
		return append(b, ' ')
	}
	for ; breaks > 1; breaks-- {
		b = append(b, '\n')
	}
	return b
}
