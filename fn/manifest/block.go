// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// context says after which indicator a block node stands.
type context uint8

const (
	ctxTop   context = iota // at the start of a document
	ctxEntry                // after the dash of a sequence entry
	ctxValue                // after the colon of a mapping
)

// value reads the node that follows an indicator; indent is the column of the block collection that holds the node.
// It is called just after the indicator and may return at the next token.
func (p *parser) value(indent int, ctx context) *node {
	p.enter()
	defer func() { p.depth-- }()
	after := p.pos
	keyOK := ctx == ctxEntry || p.fresh
	if ctx == ctxEntry && !p.fresh {
		for p.peek(0) == ' ' {
			p.pos++
		}
		if p.peek(0) == '\t' {
			p.fail(p.pos, "found a tab after a dash")
		}
	}
	p.space()
	keyOK = keyOK || p.fresh
	if p.ended(indent, ctx) {
		return p.new(scalarKind, plainStyle, after)
	}
	pr := props{start: p.pos}
	propsFresh, propsCol := keyOK, p.col()
	if p.properties(&pr) {
		after = p.pos
		p.space()
		if p.fresh || p.pos >= len(p.src) { // the properties stand alone on their line: they are those of the whole node
			if p.ended(indent, ctx) {
				return p.apply(p.new(scalarKind, plainStyle, after), pr)
			}
			return p.content(indent, p.col(), true, props{}, pr)
		}
		return p.content(indent, propsCol, propsFresh, pr, props{})
	}
	return p.content(indent, p.col(), keyOK, props{}, props{})
}

// ended reports whether no node follows: the next token belongs to an outer collection.
func (p *parser) ended(indent int, ctx context) bool {
	if p.pos >= len(p.src) || p.atMarker() {
		return true
	}
	if !p.fresh || p.col() > indent {
		return false
	}
	return ctx != ctxValue || p.col() < indent || p.peek(0) != '-' || !blankz(p.peek(1))
}

// content reads a node at its first token. inner are the properties on the same line, which belong to the first key if
// there is one; outer those of the whole node.
func (p *parser) content(indent, col int, keyOK bool, inner, outer props) *node {
	start := p.pos
	switch c := p.peek(0); {
	case c == '-' && blankz(p.peek(1)):
		if !keyOK || inner.any() {
			p.fail(p.pos, "did not expect a sequence entry here")
		}
		return p.sequence(col, outer)
	case c == '?' && blankz(p.peek(1)):
		p.fail(p.pos, "found a complex mapping key")
	case c == '|' || c == '>':
		return p.apply(p.blockScalar(indent, c == '|'), p.one(inner, outer))
	}
	p.fresh = false
	atom := p.atom(indent, keyOK)
	if !p.keyFollows(start) {
		if atom.kind == aliasKind && (inner.any() || outer.any()) {
			p.fail(start, "found an alias with properties")
		}
		return p.apply(atom, p.one(inner, outer))
	}
	if !keyOK {
		p.fail(p.pos, "mapping values are not allowed here")
	}
	return p.mapping(col, p.apply(atom, inner), outer)
}

func (p *parser) one(inner, outer props) props {
	if inner.any() && outer.any() {
		p.fail(p.pos, "found properties twice")
	}
	if inner.any() {
		return inner
	}
	return outer
}

// atom reads a scalar, an alias or a flow collection in block context.
func (p *parser) atom(indent int, keyOK bool) *node {
	switch p.peek(0) {
	case '"':
		return p.double()
	case '\'':
		return p.single()
	case '[', '{':
		return p.flowCollection()
	case '*':
		return p.alias()
	}
	return p.plain(indent, keyOK)
}

// keyFollows reports whether what was just read from start is a key: a colon follows on the same line.
func (p *parser) keyFollows(start int) bool {
	i := p.pos
	for i < len(p.src) && (p.src[i] == ' ' || p.src[i] == '\t') {
		i++
	}
	if i >= len(p.src) || p.src[i] != ':' || i+1 < len(p.src) && !blankz(p.src[i+1]) {
		return false
	}
	if i-start > maxKey || p.bol > start {
		p.fail(start, "found a key that is too long or spans lines")
	}
	p.pos = i
	return true
}

// mapping reads a block mapping; the first key has been read and the position is at its colon.
func (p *parser) mapping(col int, key *node, pr props) *node {
	m := p.new(mappingKind, blockStyle, key.prop)
	m.indent = col
	p.applyOpen(m, pr)
	var last *node
	for {
		if key.kind != scalarKind {
			p.fail(key.start, "found a key that is not a scalar")
		}
		p.pos++
		key.colon = p.pos
		p.fresh = false
		v := p.value(col, ctxValue)
		if last == nil {
			m.first = key
		} else {
			last.next = key
		}
		key.next, last = v, v
		m.n++
		m.end = v.end
		p.space()
		if p.pos >= len(p.src) || p.atMarker() {
			break
		}
		if !p.fresh {
			p.fail(p.pos, "did not expect %s here", p.rest())
		}
		if c := p.col(); c < col {
			break
		} else if c > col {
			p.fail(p.pos, "found a key that is indented more than its neighbours")
		}
		key = p.key()
	}
	m.open = false
	return m
}

// key reads a further key of a block mapping up to its colon.
func (p *parser) key() *node {
	start := p.pos
	pr := props{start: start}
	p.fresh = false
	if p.properties(&pr) {
		p.space()
		if p.fresh {
			p.fail(p.pos, "found properties without a key")
		}
	}
	if c := p.peek(0); (c == '-' || c == '?') && blankz(p.peek(1)) || c == '|' || c == '>' {
		p.fail(p.pos, "expected a key and found %s", p.rest())
	}
	k := p.atom(-1, true)
	if !p.keyFollows(start) {
		p.fail(start, "expected a key with a colon")
	}
	return p.apply(k, pr)
}

// sequence reads a block sequence at its first dash.
func (p *parser) sequence(col int, pr props) *node {
	s := p.new(sequenceKind, blockStyle, p.pos)
	s.indent = col
	p.applyOpen(s, pr)
	var last *node
	for {
		dash := p.pos
		p.pos++
		p.fresh = false
		e := p.value(col, ctxEntry)
		e.colon = dash
		if last == nil {
			s.first = e
		} else {
			last.next = e
		}
		last = e
		s.n++
		s.end = e.end
		p.space()
		if p.pos >= len(p.src) || p.atMarker() {
			break
		}
		if !p.fresh {
			p.fail(p.pos, "did not expect %s here", p.rest())
		}
		c := p.col()
		if c > col {
			p.fail(p.pos, "found an entry that is indented more than its neighbours")
		}
		if c < col || p.peek(0) != '-' || !blankz(p.peek(1)) {
			break
		}
	}
	s.open = false
	return s
}

// props are an anchor and a tag before a node.
type props struct {
	start       int
	anchor, tag string
}

func (pr props) any() bool { return pr.anchor != "" || pr.tag != "" }

// properties reads an anchor and a tag in any order and reports whether there was one.
func (p *parser) properties(pr *props) bool {
	for {
		c := p.peek(0)
		if c == '&' && pr.anchor == "" {
			pr.anchor = p.name()
		} else if c == '!' && pr.tag == "" {
			i := p.pos
			for i < len(p.src) && !blankz(p.src[i]) && !strings.ContainsRune(",[]{}<>", rune(p.src[i])) {
				i++
			}
			pr.tag = p.src[p.pos:i]
			p.pos = i
		} else {
			if (c == '&' || c == '!') && pr.any() {
				p.fail(p.pos, "found properties twice")
			}
			return pr.any()
		}
		if !blankz(p.peek(0)) {
			p.fail(p.pos, "expected a blank after an anchor or tag")
		}
		if p.pos >= len(p.src) {
			return true
		}
		for (p.peek(0) == ' ' || p.peek(0) == '\t') && (p.peek(1) == ' ' || p.peek(1) == '&' || p.peek(1) == '!') {
			p.pos++
		}
		p.fresh = false
	}
}

// name reads the name of an anchor or alias.
func (p *parser) name() string {
	i := p.pos + 1
	for i < len(p.src) {
		c := p.src[i]
		if !(c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z') {
			break
		}
		i++
	}
	s := p.src[p.pos+1 : i]
	if s == "" {
		p.fail(p.pos, "expected a name after %q", p.src[p.pos:p.pos+1])
	}
	p.pos = i
	return s
}

// apply gives a node its properties.
func (p *parser) apply(n *node, pr props) *node {
	if pr.any() {
		n.prop, n.anchor, n.tag = pr.start, pr.anchor, pr.tag
		p.register(n)
	}
	return n
}

func (p *parser) applyOpen(n *node, pr props) {
	n.open = true
	p.apply(n, pr)
}

func (p *parser) register(n *node) {
	if n.anchor == "" {
		return
	}
	if p.names == nil {
		p.names = map[string]*node{}
	}
	p.names[n.anchor] = n
}

func (p *parser) alias() *node {
	n := p.new(aliasKind, plainStyle, p.pos)
	n.val = p.name()
	n.end = p.pos
	if c := p.peek(0); !blankz(c) && c != ',' && c != ']' && c != '}' {
		p.fail(p.pos, "expected a blank after an alias")
	}
	n.target = p.names[n.val]
	if n.target == nil && p.outer != nil {
		n.target = p.outer(n.val)
		n.foreign = true
	}
	if n.target == nil {
		p.fail(n.start, "found the alias *%s without its anchor", n.val)
	}
	if n.target.open {
		p.refuse(n.start, "the value of anchor &%s contains itself", n.val)
	}
	return n
}
