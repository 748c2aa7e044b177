// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// parsePlain reads an unquoted scalar in block context. If keyOK is set it ends at the colon of a key.
func (p *yamlParser) parsePlain(indent int, keyOK bool) *yamlNode {
	p.plainStart(false)
	n := p.newNode(scalarKind, plainStyle, p.pos)
	end, stop := p.plainLine(p.pos)
	n.val, n.end = p.src[n.start:end], end
	p.pos = end
	if stop == ':' {
		if !keyOK {
			p.failUnsure(end, "mapping values are not allowed here")
		}
		return n
	}
	if stop == '#' {
		return n
	}
	p.moreLines(n, indent)
	return n
}

func (p *yamlParser) plainStart(flow bool) {
	c, d := p.peekByte(0), p.peekByte(1)
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
		p.failUnsure(p.pos, "did not expect %s here", p.remainingText())
	}
}

// plainLine finds where the unquoted text from i ends in its line, and whether a comment (#), a colon or the line's end
// (0) ends it.
func (p *yamlParser) plainLine(i int) (end int, stop byte) {
	s := p.src
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

// moreLines folds the further lines of an unquoted scalar of block context into its first.
func (p *yamlParser) moreLines(n *yamlNode, indent int) {
	var b []byte
	for {
		i, bol, breaks := n.end, p.bol, 0
		for i < len(p.src) {
			if c := p.src[i]; c == '\n' {
				breaks++
				bol = i + 1
			} else if c == '\t' && breaks > 0 {
				p.failUnsure(i, "found a tab in the indentation of a scalar")
			} else if c != ' ' && c != '\r' && c != '\t' {
				break
			}
			i++
		}
		if breaks == 0 || i >= len(p.src) || i-bol <= indent || p.src[i] == '#' || i == bol && isMarker(p.src[i:]) {
			break
		}
		end, stop := p.plainLine(i)
		if stop == ':' {
			p.failUnsure(end, "mapping values are not allowed here")
		}
		if b == nil {
			b = append(b, n.val...)
		}
		b = appendFolded(b, breaks)
		b = append(b, p.src[i:end]...)
		n.end, p.pos, p.bol = end, end, bol
		if stop == '#' {
			break
		}
	}
	if b != nil {
		n.val = string(b)
	}
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

func (p *yamlParser) parseSingleQuoted() *yamlNode {
	n := p.newNode(scalarKind, singleStyle, p.pos)
	i := p.pos + 1
	from := i
	var b []byte
	for {
		if i >= len(p.src) {
			p.failUnsure(n.start, "the single quote is not closed")
		}
		c := p.src[i]
		switch {
		case c == '\'' && i+1 < len(p.src) && p.src[i+1] == '\'':
			b = append(b, p.src[from:i+1]...)
			i += 2
			from = i
			continue
		case c == '\'':
			p.endQuoted(n, b, from, i)
			return n
		case c == '\n' || c == '\r':
			b = append(b, p.src[from:i]...)
			b, i = p.foldQuoted(trimTail(b, 0), i)
			from = i
			continue
		}
		i++
	}
}

// endQuoted ends a quoted scalar at its closing quote.
func (p *yamlParser) endQuoted(n *yamlNode, b []byte, from, i int) {
	if b == nil {
		n.val = p.src[from:i]
	} else {
		n.val = string(append(b, p.src[from:i]...))
	}
	n.end = i + 1
	p.pos = i + 1
}

// trimTail removes blanks from the end of b, but not before keep, as those come from escapes.
func trimTail(b []byte, keep int) []byte {
	for len(b) > keep && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	if b == nil {
		b = []byte{}
	}
	return b
}

// foldQuoted reads a run of line breaks and blanks inside quotes.
func (p *yamlParser) foldQuoted(b []byte, i int) ([]byte, int) {
	breaks := 0
	for i < len(p.src) {
		c := p.src[i]
		if c == '\n' {
			breaks++
			p.bol = i + 1
			if isMarker(p.src[i+1:]) && p.columnOf(i+1) == 0 {
				p.failUnsure(i+1, "found a document marker in a quoted scalar")
			}
		} else if c != ' ' && c != '\t' && c != '\r' {
			break
		}
		i++
	}
	return appendFolded(b, breaks), i
}

func (p *yamlParser) parseDoubleQuoted() *yamlNode {
	n := p.newNode(scalarKind, doubleStyle, p.pos)
	i := p.pos + 1
	from, keep := i, 0
	var b []byte
	for {
		if i >= len(p.src) {
			p.failUnsure(n.start, "the double quote is not closed")
		}
		switch p.src[i] {
		case '"':
			p.endQuoted(n, b, from, i)
			return n
		case '\\':
			b = append(b, p.src[from:i]...)
			if b == nil {
				b = []byte{}
			}
			b, i = p.parseEscape(b, i)
			from, keep = i, len(b)
			continue
		case '\n', '\r':
			b = trimTail(append(b, p.src[from:i]...), keep)
			b, i = p.foldQuoted(b, i)
			from, keep = i, len(b)
			continue
		}
		i++
	}
}

const (
	escapeFrom = "0abt\tnvfre \"'\\NLP_/"
	escapeTo   = "\x00\a\b\t\t\n\v\f\r\x1b \"'\\"
)

// parseEscape reads an escape sequence at i.
func (p *yamlParser) parseEscape(b []byte, i int) ([]byte, int) {
	if i+1 >= len(p.src) {
		p.failUnsure(i, "the double quote is not closed")
	}
	c := p.src[i+1]
	switch c {
	case '\n', '\r': // an escaped line break: the blanks before it stay, and those of the next line go
		j := i + 1
		if c == '\r' {
			j++
		}
		j++
		p.bol = j
		for j < len(p.src) && (p.src[j] == ' ' || p.src[j] == '\t') {
			j++
		}
		if j < len(p.src) && (p.src[j] == '\n' || p.src[j] == '\r') {
			p.failUnsure(j, "found an empty line after an escaped line break")
		}
		return b, j
	case 'x', 'u', 'U':
		return p.hexEscape(b, i, map[byte]int{'x': 2, 'u': 4, 'U': 8}[c])
	}
	k := strings.IndexByte(escapeFrom, c)
	if k < 0 {
		p.failUnsure(i, "found an unknown escape character %q", c)
	}
	switch c {
	case 'N':
		return append(b, "\u0085"...), i + 2
	case 'L':
		return append(b, "\u2028"...), i + 2
	case 'P':
		return append(b, "\u2029"...), i + 2
	case '_':
		return append(b, "\u00a0"...), i + 2
	case '/':
		return append(b, '/'), i + 2
	}
	return append(b, escapeTo[k]), i + 2
}

func (p *yamlParser) hexEscape(b []byte, i, digits int) ([]byte, int) {
	r, j := p.parseHex(i+2, digits), i+2+digits
	if utf16.IsSurrogate(r) { // a pair as JSON writes it
		if !strings.HasPrefix(p.src[j:], `\u`) {
			p.failUnsure(i, "found half of a surrogate pair")
		}
		r = utf16.DecodeRune(r, p.parseHex(j+2, 4))
		if r == utf8.RuneError {
			p.failUnsure(i, "found half of a surrogate pair")
		}
		j += 6
	}
	if !utf8.ValidRune(r) {
		p.failUnsure(i, "found an escape of no character")
	}
	return utf8.AppendRune(b, r), j
}

func (p *yamlParser) parseHex(i, digits int) rune {
	if i+digits > len(p.src) {
		p.failUnsure(i, "found a short escape")
	}
	for _, c := range []byte(p.src[i : i+digits]) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			p.failUnsure(i, "found an escape without its digits")
		}
	}
	v, err := strconv.ParseUint(p.src[i:i+digits], 16, 32)
	if err != nil || v > utf8.MaxRune {
		p.failUnsure(i, "found an escape of no character")
	}
	return rune(v)
}
