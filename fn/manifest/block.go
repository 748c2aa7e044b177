// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"
)

// nodeContext is the indicator that a block node follows.
type nodeContext uint8

const (
	ctxTop   nodeContext = iota // at the start of a document
	ctxEntry                    // after the dash of a sequence entry
	ctxValue                    // after the colon of a mapping
)

// parseValue reads the node that follows an indicator; indent is the column of the block collection that holds the node.
// It is called just after the indicator and may return at the next token.
func (p *yamlParser) parseValue(indent int, ctx nodeContext) *yamlNode {
	p.enterNode()
	defer func() { p.depth-- }()
	after := p.pos
	keyOK := ctx == ctxEntry || p.fresh
	if ctx == ctxEntry && !p.fresh {
		for p.peekByte(0) == ' ' {
			p.pos++
		}
		if p.peekByte(0) == '\t' {
			p.failUnsure(p.pos, "found a tab after a dash")
		}
	}
	p.skipSpace()
	keyOK = keyOK || p.fresh
	if p.hasEnded(indent, ctx) {
		return p.absentNode(after)
	}
	pr := nodeProps{start: p.pos}
	propsFresh, propsCol := keyOK, p.currentColumn()
	if p.parseProperties(&pr) {
		after = p.pos
		p.skipSpace()
		if p.fresh || p.pos >= len(p.src) { // the properties are alone on their line, so they belong to the whole node
			if p.hasEnded(indent, ctx) {
				return p.applyProps(p.absentNode(after), pr)
			}
			return p.parseContent(indent, p.currentColumn(), true, nodeProps{}, pr)
		}
		return p.parseContent(indent, propsCol, propsFresh, pr, nodeProps{})
	}
	return p.parseContent(indent, p.currentColumn(), keyOK, nodeProps{}, nodeProps{})
}

// parseContent reads a node at its first token. inner holds the properties on the same line, which belong to the
// first key if the node is a mapping; outer holds those of the whole node.
func (p *yamlParser) parseContent(indent, col int, keyOK bool, inner, outer nodeProps) *yamlNode {
	start := p.pos
	c := p.peekByte(0)
	switch {
	case c == '-' && isBlankOrEnd(p.peekByte(1)):
		if !keyOK || inner.isSet() {
			p.failUnsure(p.pos, "did not expect a sequence entry here")
		}
		return p.parseSequence(col, outer)
	case c == '?' && isBlankOrEnd(p.peekByte(1)):
		p.failUnsure(p.pos, "found a complex mapping key")
	case c == '|' || c == '>':
		return p.applyProps(p.parseBlockScalar(indent, c == '|'), p.mergeNodeProperties(inner, outer))
	case c == '[' || c == '{':
		p.fresh, p.block = false, indent
		n := p.flowCollection(p.mergeNodeProperties(inner, outer))
		if p.keyFollows(start) {
			p.failUnsure(start, "found a key that is not a scalar")
		}
		return n
	}
	p.fresh = false
	atom := p.parseAtom(indent, keyOK)
	if !p.keyFollows(start) {
		if atom.kind == aliasKind && (inner.isSet() || outer.isSet()) {
			p.failUnsure(start, "found an alias with properties")
		}
		return p.applyProps(atom, p.mergeNodeProperties(inner, outer))
	}
	if !keyOK {
		p.failUnsure(p.pos, "mapping values are not allowed here; is the line indented as its neighbours, and a text with a colon in quotes?")
	}
	return p.parseMapping(col, p.applyProps(atom, inner), outer)
}

func (p *yamlParser) mergeNodeProperties(inner, outer nodeProps) nodeProps {
	if inner.isSet() && outer.isSet() {
		p.failUnsure(p.pos, "found properties twice")
	}
	if inner.isSet() {
		return inner
	}
	return outer
}

// parseAtom reads a scalar or an alias in block context.
func (p *yamlParser) parseAtom(indent int, keyOK bool) *yamlNode {
	switch p.peekByte(0) {
	case '"', '\'':
		return p.parseQuoted()
	case '*':
		return p.parseAlias()
	}
	n := p.newNode(scalarKind, plainStyle)
	n.val = p.readPlain(indent, keyOK)
	n.end = p.pos
	return n
}

func (p *yamlParser) parseQuoted() *yamlNode {
	n := p.newNode(scalarKind, doubleStyle)
	if p.peekByte(0) == '\'' {
		n.style = singleStyle
	}
	n.val = p.readQuoted()
	n.end = p.pos
	return n
}

// parseMapping reads a block mapping; the first key has been read and the position is at its colon.
func (p *yamlParser) parseMapping(col int, key *yamlNode, pr nodeProps) *yamlNode {
	m := p.newNode(mappingKind, blockStyle)
	m.start, m.prop, m.indent = key.prop, key.prop, col
	p.openNode(m, pr)
	var last *yamlNode
	for {
		if key.kind != scalarKind {
			p.failUnsure(key.start, "found a key that is not a scalar")
		}
		p.pos++
		key.colon = p.pos
		p.fresh = false
		v := p.parseValue(col, ctxValue)
		key.next = v
		m.appendChild(last, key)
		last = v
		m.n++
		m.end = v.end
		if !p.continuesAt(col, "a key") {
			break
		}
		key = p.parseKey()
	}
	m.open = false
	return m
}

// parseKey reads a further key of a block mapping up to its colon.
func (p *yamlParser) parseKey() *yamlNode {
	start := p.pos
	pr := nodeProps{start: start}
	p.fresh = false
	if p.parseProperties(&pr) {
		p.skipSpace()
		if p.fresh {
			p.failUnsure(p.pos, "found properties without a key")
		}
	}
	if p.peekByte(0) == '?' && isBlankOrEnd(p.peekByte(1)) {
		p.failUnsure(p.pos, "found a key with a question mark (%s), which is valid YAML, and not edited; write it as a key with a colon", p.remainingText())
	}
	if c := p.peekByte(0); c == '-' && isBlankOrEnd(p.peekByte(1)) || c == '|' || c == '>' {
		p.failUnsure(p.pos, "expected a key and found %s", p.remainingText())
	}
	k := p.parseAtom(-1, true)
	if !p.keyFollows(start) {
		p.failUnsure(start, "expected a key with a colon")
	}
	return p.applyProps(k, pr)
}

// parseSequence reads a block sequence at its first dash.
func (p *yamlParser) parseSequence(col int, pr nodeProps) *yamlNode {
	s := p.newNode(sequenceKind, blockStyle)
	s.indent = col
	p.openNode(s, pr)
	var last *yamlNode
	for {
		dash := p.pos
		p.pos++
		p.fresh = false
		e := p.parseValue(col, ctxEntry)
		e.colon = dash
		s.appendChild(last, e)
		last = e
		s.n++
		s.end = e.end
		if !p.continuesAt(col, "an entry") || p.peekByte(0) != '-' || !isBlankOrEnd(p.peekByte(1)) {
			break
		}
	}
	s.open = false
	return s
}

// nodeProps are an anchor and a tag before a node.
type nodeProps struct {
	start       int
	anchor, tag string
}

func (pr nodeProps) isSet() bool { return pr.anchor != "" || pr.tag != "" }

// parseProperties reads an anchor and a tag in any order and reports whether it found one.
func (p *yamlParser) parseProperties(pr *nodeProps) bool {
	for {
		c := p.peekByte(0)
		if c == '&' && pr.anchor == "" {
			pr.anchor = p.readName()
		} else if c == '!' && pr.tag == "" {
			i := p.pos
			for i < len(p.src) && !isBlankOrEnd(p.src[i]) && !strings.ContainsRune(",[]{}<>", rune(p.src[i])) {
				i++
			}
			pr.tag = p.src[p.pos:i]
			p.pos = i
		} else {
			if (c == '&' || c == '!') && pr.isSet() {
				p.failUnsure(p.pos, "found properties twice")
			}
			return pr.isSet()
		}
		if !isBlankOrEnd(p.peekByte(0)) {
			p.failUnsure(p.pos, "expected a blank after an anchor or tag")
		}
		if p.pos >= len(p.src) {
			return true
		}
		for (p.peekByte(0) == ' ' || p.peekByte(0) == '\t') && (p.peekByte(1) == ' ' || p.peekByte(1) == '&' || p.peekByte(1) == '!') {
			p.pos++
		}
		p.fresh = false
	}
}

// applyProps sets the properties of a node.
func (p *yamlParser) applyProps(n *yamlNode, pr nodeProps) *yamlNode {
	if pr.isSet() {
		n.prop, n.anchor, n.tag = pr.start, pr.anchor, pr.tag
		p.anchors.addNode(n)
	}
	return n
}

// openNode sets the properties of a collection whose end is not reached yet.
func (p *yamlParser) openNode(n *yamlNode, pr nodeProps) {
	n.open = true
	p.applyProps(n, pr)
}

func (p *yamlParser) parseAlias() *yamlNode {
	n := p.newNode(aliasKind, plainStyle)
	n.val = p.readName()
	n.end = p.pos
	if c := p.peekByte(0); !isBlankOrEnd(c) && c != ',' && c != ']' && c != '}' {
		p.failUnsure(p.pos, "expected a blank after an alias")
	}
	n.target, n.foreign = p.anchors.findNode(n.val)
	if n.target == nil {
		p.failUnsure(n.start, "found the alias *%s without its anchor", n.val)
	}
	if n.target.open {
		panic(&syntaxError{off: n.start, msg: fmt.Sprintf("the value of anchor &%s contains itself", n.val)})
	}
	return n
}

// anchorTable finds nodes by anchor; outer is asked for names that the text itself does not have.
type anchorTable struct {
	names map[string]*yamlNode
	outer func(name string) *yamlNode
}

func (a *anchorTable) addNode(n *yamlNode) {
	if n.anchor == "" {
		return
	}
	if a.names == nil {
		a.names = map[string]*yamlNode{}
	}
	a.names[n.anchor] = n
}

// findNode returns the node of an anchor, nil without one; foreign reports whether it is in another text.
func (a *anchorTable) findNode(name string) (n *yamlNode, foreign bool) {
	n = a.names[name]
	if n == nil && a.outer != nil {
		return a.outer(name), true
	}
	return n, false
}
