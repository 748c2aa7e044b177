// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

// parseBlockScalar reads a literal or folded scalar at its indicator; parent is the column of the collection around it.
func (p *yamlParser) parseBlockScalar(parent int, literal bool) *yamlNode {
	n := p.newNode(scalarKind, literalStyle)
	if !literal {
		n.style = foldedStyle
	}
	chomp, increment := p.blockHeader()
	n.end = p.pos
	indent := 0
	if increment > 0 {
		indent = max(parent, 0) + increment
	}
	p.nextLine()
	lines := blockLines{textScanner: &p.textScanner, indent: indent, parent: parent, literal: literal, end: n.end}
	n.val = lines.readContent(chomp)
	n.indent, n.end = lines.indent, lines.end
	p.fresh = true
	return n
}

// blockHeader reads the indicators after | or > and advances to the end of the line.
func (t *textScanner) blockHeader() (chomp, increment int) {
	t.pos++
	for {
		c := t.peekByte(0)
		switch {
		case (c == '+' || c == '-') && chomp == 0:
			chomp = 1
			if c == '-' {
				chomp = -1
			}
		case c >= '1' && c <= '9' && increment == 0:
			increment = int(c - '0')
		default:
			start := t.pos
			for t.peekByte(0) == ' ' || t.peekByte(0) == '\t' {
				t.pos++
			}
			if t.peekByte(0) == '#' && t.pos > start {
				t.pos = lineEnd(t.src, t.pos)
			}
			if c := t.peekByte(0); c != '\n' && c != '\r' && t.pos < len(t.src) {
				t.failUnsure(t.pos, "did not expect %s after the indicator of a block scalar", t.remainingText())
			}
			return chomp, increment
		}
		t.pos++
	}
}

// blockLines reads the lines of a block scalar.
type blockLines struct {
	*textScanner
	indent  int // column of the content, 0 until it is known
	parent  int
	literal bool
	end     int // end of the last line that counts
}

func (b *blockLines) readContent(chomp int) string {
	var out []byte
	leadBlank, pendingBreak := false, false
	breaks := b.skipBlanks()
	for b.pos < len(b.src) && b.columnOf(b.pos) == b.indent && b.indent > 0 {
		c := b.peekByte(0)
		blank := c == ' ' || c == '\t'
		if pendingBreak {
			if !b.literal && !leadBlank && !blank {
				if breaks == 0 {
					out = append(out, ' ')
				}
			} else {
				out = append(out, '\n')
			}
		}
		for ; breaks > 0; breaks-- {
			out = append(out, '\n')
		}
		leadBlank = blank
		end := lineEnd(b.src, b.pos)
		out = append(out, b.src[b.pos:end]...)
		b.end = end
		b.pos = end
		pendingBreak = b.pos < len(b.src)
		b.nextLine()
		if !pendingBreak {
			break
		}
		breaks = b.skipBlanks()
	}
	if chomp != -1 && pendingBreak {
		out = append(out, '\n')
	}
	if chomp == 1 {
		if breaks > 0 {
			b.end = b.lastBlank()
		}
		for ; breaks > 0; breaks-- {
			out = append(out, '\n')
		}
	}
	return string(out)
}

// lastBlank returns the end of the empty lines before the position, which a scalar that keeps them owns.
func (b *blockLines) lastBlank() int {
	i := b.bol - 1 // the line break before the line at the position
	if i > 0 && b.src[i-1] == '\r' {
		i--
	}
	return max(i, b.end)
}

// skipBlanks skips indentation and empty lines up to the next line of content, counts the line breaks, and finds
// the indentation at the first line of content.
func (b *blockLines) skipBlanks() int {
	breaks, widest := 0, 0
	for {
		for (b.indent == 0 || b.columnOf(b.pos) < b.indent) && b.peekByte(0) == ' ' {
			b.pos++
		}
		col := b.columnOf(b.pos)
		widest = max(widest, col)
		c := b.peekByte(0)
		if c == '\t' && (b.indent == 0 || col < b.indent) {
			b.failUnsure(b.pos, "found a tab where the indentation must be spaces")
		}
		if c != '\n' && c != '\r' || b.pos >= len(b.src) {
			break
		}
		breaks++
		b.nextLine()
	}
	if b.indent == 0 {
		if b.pos < len(b.src) && widest > b.columnOf(b.pos) {
			b.failUnsure(b.pos, "found an empty line with more blanks than the block scalar is indented")
		}
		b.indent = max(widest, b.parent+1, 1)
	}
	return breaks
}
