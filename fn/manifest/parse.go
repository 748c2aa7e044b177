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
}

func (e *syntaxError) Error() string {
	if e.line > 0 {
		return fmt.Sprintf("line %d: %s", e.line, e.msg)
	}
	return e.msg
}

// anchorTable finds nodes by anchor; outer is asked for names that the text itself does not have.
type anchorTable struct {
	names map[string]*yamlNode
	outer func(name string) *yamlNode
}

// yamlParser reads one document into nodes. It follows libyaml, which Kubernetes uses, and reports text as unsure
// if it might decode it differently.
type yamlParser struct {
	src   string
	pos   int
	bol   int // offset of the line that pos is in
	col0  int // column of the first byte of src
	fresh bool
	depth int
	block int // column of the block collection around the flow collection at pos, -1 at the top
	slab  []yamlNode
	store *nodeStore // where nodes come from and go back to; nil for nodes that stay
	anchorTable
}

func (p *yamlParser) failUnsure(off int, format string, args ...any) {
	panic(&syntaxError{off: off, msg: fmt.Sprintf(format, args...), unsure: true})
}

func (p *yamlParser) rejectSyntax(off int, format string, args ...any) {
	panic(&syntaxError{off: off, msg: fmt.Sprintf(format, args...)})
}

// parseText reads a document. col0 is the column where the text starts and parent the column of the block collection
// that holds it, -1 at the top.
func parseText(src string, col0, parent int, inFlow bool, outer func(string) *yamlNode) (root *yamlNode, err error) {
	return parseInto(nil, src, col0, parent, inFlow, outer)
}

// parseInto is parseText with nodes of a store.
func parseInto(store *nodeStore, src string, col0, parent int, inFlow bool, outer func(string) *yamlNode) (root *yamlNode, err error) {
	if len(src) > MaxDocument {
		return nil, &syntaxError{msg: fmt.Sprintf("the document has %d bytes, and %d are the most that is read", len(src), MaxDocument)}
	}
	p := &yamlParser{src: src, col0: col0, block: -1, store: store, anchorTable: anchorTable{outer: outer}}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *syntaxError:
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

// checkBreaks reports line breaks that only YAML 1.1 has as unsure: NEL, LS, PS and a lone carriage return.
func (p *yamlParser) checkBreaks() {
	for i := strings.IndexByte(p.src, '\r'); i >= 0; {
		if i+1 == len(p.src) || p.src[i+1] != '\n' {
			p.failUnsure(i, "found a carriage return without a line feed")
		}
		j := strings.IndexByte(p.src[i+1:], '\r')
		if j < 0 {
			break
		}
		i += 1 + j
	}
	for _, s := range [...]string{"\u0085", "\u2028", "\u2029", "\ufeff"} {
		if i := strings.Index(p.src, s); i > 0 || i == 0 && s != "\ufeff" {
			p.failUnsure(i, "found the line break or byte order mark %+q", s)
		}
	}
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
			end := p.lineEnd(p.pos)
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

func (p *yamlParser) newNode(k nodeKind, s nodeStyle, start int) *yamlNode {
	var n *yamlNode
	if p.store != nil {
		n = p.store.newNode()
	} else {
		if len(p.slab) == 0 {
			p.slab = make([]yamlNode, min(max(16, (len(p.src)-p.pos)/24), slabSize))
		}
		n, p.slab = &p.slab[0], p.slab[1:]
	}
	n.kind, n.style, n.start, n.end, n.prop = k, s, start, start, start
	return n
}

func (p *yamlParser) enterNode() {
	if p.depth++; p.depth > MaxDepth {
		p.rejectSyntax(p.pos, "the nesting is deeper than %d levels", MaxDepth)
	}
}

// peekByte returns the byte i after the position, and 0 after the end.
func (p *yamlParser) peekByte(i int) byte {
	if p.pos+i < len(p.src) {
		return p.src[p.pos+i]
	}
	return 0
}

func (p *yamlParser) currentColumn() int { return p.columnOf(p.pos) }

func (p *yamlParser) columnOf(off int) int {
	if p.bol == 0 {
		return off + p.col0
	}
	return off - p.bol
}

func (p *yamlParser) lineEnd(off int) int { return lineEnd(p.src, off) }

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

// remainingText is the text at the position, for messages.
func (p *yamlParser) remainingText() string {
	s := p.src[p.pos:p.lineEnd(p.pos)]
	if s == "" && p.pos >= len(p.src) {
		return "the end of the document"
	} else if s == "" {
		return "the end of the line"
	}
	if len(s) > 20 {
		s = s[:20] + "…"
	}
	return fmt.Sprintf("%q", s)
}

func isBlankOrEnd(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == 0 }

// isMarker reports whether the line at s is a document start or end.
func isMarker(s string) bool {
	return len(s) >= 3 && (s[:3] == "---" || s[:3] == "...") && (len(s) == 3 || isBlankOrEnd(s[3]))
}

func (p *yamlParser) atMarker() bool {
	return p.pos == p.bol && p.columnOf(p.pos) == 0 && isMarker(p.src[p.pos:])
}

// skipSpace advances to the next token of block context over blanks, comments and line breaks, and records whether
// the token is the first of its line.
func (p *yamlParser) skipSpace() {
	for {
		for p.peekByte(0) == ' ' || p.peekByte(0) == '\t' && !p.fresh {
			p.pos++
		}
		c := p.peekByte(0)
		switch {
		case c == '#' && (p.pos == 0 || p.fresh || p.src[p.pos-1] == ' ' || p.src[p.pos-1] == '\t'):
			p.pos = p.lineEnd(p.pos)
		case c == '\n', c == '\r':
			if c == '\r' {
				p.pos++
			}
			p.pos++
			p.bol = p.pos
			p.fresh = true
		case c == '\t':
			p.failUnsure(p.pos, "found a tab where the indentation must be spaces")
		default:
			return
		}
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
