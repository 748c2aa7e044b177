// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"strings"
)

// Bounds on what is read, so that no input can exhaust time, memory or the stack.
const (
	// MaxDocument is the size in bytes of the largest document that is decoded. The API server accepts objects of
	// about 3 MB at most; lists in block style are split as text and may be larger.
	MaxDocument = 32 << 20
	// MaxDepth is the deepest nesting that is decoded.
	MaxDepth = 1000
	// MaxAliased is the largest number of values to which the aliases of one document may expand.
	MaxAliased = 100_000

	maxKey = 1024 // a simple key's length, YAML 1.1 section 9.1.2
)

// syntaxError is an error at a place in the text. With unsure the text may still be good YAML: the parser here reads
// the YAML that people write and leaves the rest to the parser that Kubernetes uses.
type syntaxError struct {
	off    int
	line   int // from 1, filled by who knows the file
	msg    string
	unsure bool
	flow   int // 1 more than where the innermost flow collection around off begins, 0 for none
}

func (e *syntaxError) Error() string {
	if e.line > 0 {
		return fmt.Sprintf("line %d: %s", e.line, e.msg)
	}
	return e.msg
}

// yamlParser reads one document into nodes. It follows libyaml, which Kubernetes uses, and reports text as unsure
// if it might decode it differently.
type yamlParser struct {
	textScanner
	anchors anchorTable
	store   *nodeStore
	depth   int
	block   int // column of the block collection around the flow collection at pos, -1 at the top
	flow    int // 1 more than where the innermost flow collection at pos begins, 0 for none
}

// parseText reads a document. col0 is the column where the text starts and parent the column of the block collection
// that holds it, -1 at the top.
func parseText(src string, col0, parent int, inFlow bool, outer func(string) *yamlNode) (root *yamlNode, err error) {
	store := &nodeStore{slabSize: min(max(16, len(src)/24), pooledSlab)}
	return parseInto(store, src, col0, parent, inFlow, outer)
}

// parseInto is parseText with nodes of a store.
func parseInto(store *nodeStore, src string, col0, parent int, inFlow bool, outer func(string) *yamlNode) (root *yamlNode, err error) {
	if len(src) > MaxDocument {
		return nil, &syntaxError{msg: fmt.Sprintf("the document has %d bytes, and %d are the most that is read", len(src), MaxDocument)}
	}
	scanner := textScanner{src: src, col0: col0}
	p := &yamlParser{textScanner: scanner, anchors: anchorTable{outer: outer}, store: store, block: -1}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *syntaxError:
			e.flow = p.flow
			root, err = nil, e
		default:
			panic(e)
		}
	}()
	p.checkBreaks()
	if inFlow {
		p.flowSpace()
		root = p.flowNode()
		p.flowSpace()
	} else {
		root = p.parseDocument(parent)
	}
	if p.pos < len(p.src) && !p.atMarker() {
		p.failUnsure(p.pos, "did not expect %s here", p.remainingText())
	}
	return root, nil
}

// parseDocument reads past byte order mark, comments, directives and the document start, then the document's node.
func (p *yamlParser) parseDocument(parent int) *yamlNode {
	ctx := ctxEntry
	if parent < 0 {
		ctx = ctxTop
		if strings.HasPrefix(p.src, "\ufeff") {
			p.pos, p.bol = 3, 3
		}
		p.fresh = true
		p.skipSpace()
		directive := false
		for ; p.pos == p.bol && p.peekByte(0) == '%'; directive = true {
			end := lineEnd(p.src, p.pos)
			if !knownDirective(p.src[p.pos:end]) {
				p.failUnsure(p.pos, "found a directive other than %%YAML 1.1 and %%YAML 1.2")
			}
			p.pos = end
			p.skipSpace()
		}
		if p.atMarker() && p.peekByte(0) == '-' {
			p.pos += 3
			p.fresh = false
		} else if directive {
			p.failUnsure(p.pos, "found a directive without a document start")
		}
	}
	n := p.parseValue(parent, ctx)
	p.skipSpace()
	return n
}

// knownDirective reports whether a line is the directive of a supported version of YAML. Both versions are read
// alike, as Kubernetes does with text without a version.
func knownDirective(line string) bool {
	fields := strings.Fields(line)
	return len(fields) >= 2 && fields[0] == "%YAML" && (fields[1] == "1.1" || fields[1] == "1.2") && (len(fields) == 2 || fields[2][0] == '#')
}

func (p *yamlParser) newNode(k nodeKind, s nodeStyle) *yamlNode {
	n := p.store.newNode()
	n.kind, n.style, n.start, n.end, n.prop = k, s, p.pos, p.pos, p.pos
	return n
}

// absentNode returns the node of a value without text at an offset.
func (p *yamlParser) absentNode(off int) *yamlNode {
	n := p.newNode(scalarKind, plainStyle)
	n.start, n.end, n.prop = off, off, off
	return n
}

func (p *yamlParser) enterNode() {
	if p.depth++; p.depth > MaxDepth {
		panic(&syntaxError{off: p.pos, msg: fmt.Sprintf("the nesting is deeper than %d levels", MaxDepth)})
	}
}

// asSyntaxError returns the syntax error in err, or nil.
func asSyntaxError(err error) *syntaxError {
	var se *syntaxError
	if errors.As(err, &se) {
		return se
	}
	return nil
}
