// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

// flowSpace skips blanks, line breaks and comments inside a flow collection.
func (p *yamlParser) flowSpace() {
	for {
		c := p.peekByte(0)
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			p.pos++
		case c == '\n':
			p.pos++
			p.bol = p.pos
			if p.atMarker() {
				p.failUnsure(p.pos, "found a document marker inside a flow collection")
			}
		case c == '#' && p.pos > 0 && isBlankOrEnd(p.src[p.pos-1]):
			p.pos = p.lineEnd(p.pos)
		default:
			return
		}
	}
}

// flowCollection reads a flow mapping or sequence at its bracket. Its anchor is in scope from the bracket on: an
// alias inside the collection may not name it, even if the same name had another meaning before.
func (p *yamlParser) flowCollection(pr nodeProps) *yamlNode {
	p.enterNode()
	defer func() { p.depth-- }()
	k, closing := sequenceKind, byte(']')
	if p.peekByte(0) == '{' {
		k, closing = mappingKind, '}'
	}
	n := p.newNode(k, flowStyle, p.pos)
	p.applyOpen(n, pr)
	p.pos++
	var last *yamlNode
	add := func(c *yamlNode) {
		if last == nil {
			n.first = c
		} else {
			last.next = c
		}
		last = c
	}
	for {
		p.flowSpace()
		if p.pos >= len(p.src) {
			p.failUnsure(n.start, "the %q is not closed", p.src[n.start:n.start+1])
		}
		if p.peekByte(0) == closing {
			break
		}
		if k == mappingKind {
			key := p.flowKey()
			add(key)
			add(p.flowValue(key))
		} else {
			add(p.flowNode())
		}
		n.n++
		p.flowSpace()
		if p.peekByte(0) == ',' {
			p.pos++
			continue
		}
		if p.peekByte(0) != closing {
			p.failUnsure(p.pos, "expected a comma or %q and found %s", string(closing), p.remainingText())
		}
	}
	p.pos++
	n.end = p.pos
	n.open = false
	return n
}

func (p *yamlParser) flowKey() *yamlNode {
	start := p.pos
	bol := p.bol
	key := p.flowNode()
	if key.kind != scalarKind || p.bol != bol || p.pos-start > maxKey {
		p.failUnsure(start, "found a key that is not a scalar on one line")
	}
	return key
}

// flowValue reads the value of a key; one without a colon has none.
func (p *yamlParser) flowValue(key *yamlNode) *yamlNode {
	bol := p.bol
	p.flowSpace()
	if p.peekByte(0) != ':' {
		key.colon = -1
		return p.newNode(scalarKind, plainStyle, key.end)
	}
	if p.bol != bol {
		p.failUnsure(p.pos, "found the colon of a key on another line")
	}
	p.pos++
	key.colon = p.pos
	p.flowSpace()
	if c := p.peekByte(0); c == ',' || c == '}' {
		return p.newNode(scalarKind, plainStyle, key.colon)
	}
	return p.flowNode()
}

// flowNode reads a node inside a flow collection.
func (p *yamlParser) flowNode() *yamlNode {
	pr := nodeProps{start: p.pos}
	if p.parseProperties(&pr) {
		p.flowSpace()
	}
	var n *yamlNode
	switch p.peekByte(0) {
	case '"':
		n = p.parseDoubleQuoted()
	case '\'':
		n = p.parseSingleQuoted()
	case '[', '{':
		return p.flowCollection(pr)
	case '*':
		n = p.parseAlias()
		if pr.isSet() {
			p.failUnsure(n.start, "found an alias with properties")
		}
	default:
		n = p.flowPlain()
	}
	return p.applyProps(n, pr)
}

// flowPlain reads an unquoted scalar inside a flow collection.
func (p *yamlParser) flowPlain() *yamlNode {
	p.plainStart(true)
	n := p.newNode(scalarKind, plainStyle, p.pos)
	s := p.src
	i, end, breaks := p.pos, p.pos, 0
	var b []byte
	from := i
scan:
	for i < len(s) {
		switch c := s[i]; c {
		case ',', '[', ']', '{', '}':
			break scan
		case '?':
			p.failUnsure(i, "found a question mark in an unquoted scalar of a flow collection")
		case ':':
			if i+1 >= len(s) || isBlankOrEnd(s[i+1]) {
				break scan
			}
		case '#':
			if isBlankOrEnd(s[i-1]) {
				break scan
			}
		case ' ', '\t', '\r':
			if c == '\t' && breaks > 0 && p.columnOf(i) <= p.block {
				p.failUnsure(i, "found a tab in the indentation of a scalar")
			}
			i++
			continue
		case '\n':
			breaks++
			p.bol = i + 1
			i++
			continue
		}
		if breaks > 0 {
			if p.columnOf(i) == 0 && isMarker(s[i:]) {
				p.failUnsure(i, "found a document marker inside a flow collection")
			}
			b = appendFolded(append(b, s[from:end]...), breaks)
			from, breaks = i, 0
		}
		i++
		end = i
	}
	n.val = s[from:end]
	if b != nil {
		n.val = string(append(b, n.val...))
	}
	n.end, p.pos = end, end
	if breaks > 0 { // the breaks after the scalar are read again
		p.bol = lineStart(s, end)
	}
	return n
}

// lineStart returns the offset of the first byte of the line of off.
func lineStart(s string, off int) int {
	for off > 0 && s[off-1] != '\n' {
		off--
	}
	return off
}
