// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

// blockScalar reads a literal or folded scalar at its indicator; parent is the column of the collection around it.
func (p *yamlParser) blockScalar(parent int, literal bool) *yamlNode {
	n := p.newNode(scalarKind, literalStyle, p.pos)
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
	bs := blockLines{p: p, indent: indent, parent: parent, literal: literal, end: n.end}
	n.val = bs.readContent(chomp)
	n.indent, n.end = bs.indent, bs.end
	p.fresh = true
	return n
}

// blockHeader reads the indicators after | or > and advances to the end of the line.
func (p *yamlParser) blockHeader() (chomp, increment int) {
	p.pos++
	for {
		c := p.peekByte(0)
		switch {
		case (c == '+' || c == '-') && chomp == 0:
			chomp = 1
			if c == '-' {
				chomp = -1
			}
		case c >= '1' && c <= '9' && increment == 0:
			increment = int(c - '0')
		default:
			start := p.pos
			for p.peekByte(0) == ' ' || p.peekByte(0) == '\t' {
				p.pos++
			}
			if p.peekByte(0) == '#' && p.pos > start {
				p.pos = p.lineEnd(p.pos)
			}
			if c := p.peekByte(0); c != '\n' && c != '\r' && p.pos < len(p.src) {
				p.failUnsure(p.pos, "did not expect %s after the indicator of a block scalar", p.remainingText())
			}
			return chomp, increment
		}
		p.pos++
	}
}

// nextLine advances past the line break at the position.
func (p *yamlParser) nextLine() {
	if p.peekByte(0) == '\r' {
		p.pos++
	}
	if p.peekByte(0) == '\n' {
		p.pos++
		p.bol = p.pos
	}
}

// blockLines reads the lines of a block scalar.
type blockLines struct {
	p       *yamlParser
	indent  int // column of the content, 0 until it is known
	parent  int
	literal bool
	end     int // end of the last line that counts
}

func (b *blockLines) readContent(chomp int) string {
	p := b.p
	var out []byte
	leadBlank, pendingBreak := false, false
	breaks := b.skipBlanks()
	for p.pos < len(p.src) && p.columnOf(p.pos) == b.indent && b.indent > 0 {
		c := p.peekByte(0)
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
		end := p.lineEnd(p.pos)
		out = append(out, p.src[p.pos:end]...)
		b.end = end
		p.pos = end
		pendingBreak = p.pos < len(p.src)
		p.nextLine()
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
	i := b.p.bol - 1 // the line break before the line at the position
	if i > 0 && b.p.src[i-1] == '\r' {
		i--
	}
	return max(i, b.end)
}

// skipBlanks skips indentation and empty lines up to the next line of content, counts the line breaks, and finds
// the indentation at the first line of content.
func (b *blockLines) skipBlanks() int {
	p := b.p
	breaks, widest := 0, 0
	for {
		for (b.indent == 0 || p.columnOf(p.pos) < b.indent) && p.peekByte(0) == ' ' {
			p.pos++
		}
		col := p.columnOf(p.pos)
		widest = max(widest, col)
		c := p.peekByte(0)
		if c == '\t' && (b.indent == 0 || col < b.indent) {
			p.failUnsure(p.pos, "found a tab where the indentation must be spaces")
		}
		if c != '\n' && c != '\r' || p.pos >= len(p.src) {
			break
		}
		breaks++
		p.nextLine()
	}
	if b.indent == 0 {
		if p.pos < len(p.src) && widest > p.columnOf(p.pos) {
			p.failUnsure(p.pos, "found an empty line with more blanks than the block scalar is indented")
		}
		b.indent = max(widest, b.parent+1, 1)
	}
	return breaks
}
