// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

// flowCollection reads a flow mapping or sequence at its bracket. Its anchor is in scope from the bracket on: an
// alias inside the collection may not name it, even if the same name had another meaning before.
func (p *yamlParser) flowCollection(pr nodeProps) *yamlNode {
	p.enterNode()
	defer func() { p.depth-- }()
	k, closing := sequenceKind, byte(']')
	if p.peekByte(0) == '{' {
		k, closing = mappingKind, '}'
	}
	n := p.newNode(k, flowStyle)
	p.openNode(n, pr)
	around := p.flow
	p.flow = n.start + 1
	p.pos++
	var last *yamlNode
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
			n.appendChild(last, key)
			last = p.flowValue(key)
			key.next = last
		} else {
			e := p.flowNode()
			n.appendChild(last, e)
			last = e
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
	p.flow = around
	return n
}

func (p *yamlParser) flowKey() *yamlNode {
	start := p.pos
	bol := p.bol
	key := p.flowNode()
	if key.kind != scalarKind || p.bol != bol || p.pos-start > maxKey {
		p.failUnsure(start, "found a key that is not a scalar on one line; is a { or [ before it not closed?")
	}
	return key
}

// flowValue reads the value of a key; one without a colon has none.
func (p *yamlParser) flowValue(key *yamlNode) *yamlNode {
	bol := p.bol
	p.flowSpace()
	if p.peekByte(0) != ':' {
		key.colon = -1
		return p.absentNode(key.end)
	}
	if p.bol != bol {
		p.failUnsure(p.pos, "found the colon of a key on another line")
	}
	p.pos++
	key.colon = p.pos
	p.flowSpace()
	if c := p.peekByte(0); c == ',' || c == '}' {
		return p.absentNode(key.colon)
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
	case '"', '\'':
		n = p.parseQuoted()
	case '[', '{':
		return p.flowCollection(pr)
	case '*':
		n = p.parseAlias()
		if pr.isSet() {
			p.failUnsure(n.start, "found an alias with properties")
		}
	default:
		n = p.newNode(scalarKind, plainStyle)
		n.val = p.readFlowPlain(p.block)
		n.end = p.pos
	}
	return p.applyProps(n, pr)
}
