// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"sort"
	"strings"
	"sync"
)

// Document is one document of a stream, or one element of a list in it. It is immutable and safe for concurrent use.
type Document struct {
	path  string
	index int
	line  int // of the first byte of text in the file, from 1
	text  string

	// For elements of a list: the position of the text within the list's text.
	list   *Document
	col0   int // column of the first byte of text
	parent int // column of the dash before it, -1 for whole documents
	inFlow bool
	start  int // the text is list.text[start:end]
	end    int

	anchors *listAnchors
}

// Raw returns the document's bytes. Those of a list element start after its dash, and its further lines have the
// indentation of the list.
func (d *Document) Raw() []byte { return []byte(d.text) }

// Text returns the same bytes as a string, without a copy.
func (d *Document) Text() string { return d.text }

// Contains reports whether a text is anywhere in the document's bytes.
func (d *Document) Contains(text string) bool { return strings.Contains(d.text, text) }

// Index is the position of the document in its stream, or of the element in its list, from 0.
func (d *Document) Index() int { return d.index }

// Path is the name of the file that contains the document, as passed to Parse.
func (d *Document) Path() string { return d.path }

// Line is the line of the document's first content in the file, from 1; comments, directives and the document start
// do not count as content. For a document without content it is the document's first line.
func (d *Document) Line() int {
	if line, ok := d.contentLine(); ok {
		return line
	}
	return d.line
}

// contentLine returns the line of the first content; false without any.
func (d *Document) contentLine() (line int, ok bool) {
	line = d.line
	for s := d.text; s != ""; {
		l, rest, _ := strings.Cut(s, "\n")
		l = strings.TrimPrefix(l, "\ufeff")
		if d.list == nil && isMarker(l) {
			l = l[3:]
		}
		if c := firstNonBlank(l); c != 0 && c != '#' && (d.list != nil || l[0] != '%') {
			return line, true
		}
		line++
		s = rest
	}
	return 0, false
}

// String names the document in messages: file and line.
func (d *Document) String() string {
	if d.path == "" {
		return fmt.Sprintf("line %d", d.Line())
	}
	return fmt.Sprintf("%s:%d", d.path, d.Line())
}

// Empty reports whether the document has no content, only blanks, comments and directives.
func (d *Document) Empty() bool {
	_, ok := d.contentLine()
	return !ok
}

// Object decodes the document as Kubernetes reads it, see Decode. It returns nil for a document without content,
// and an error for one that is not a mapping.
func (d *Document) Object() (map[string]any, error) {
	v, err := decodeText(d.text, d.col0, d.parent, d.inFlow, d.outerAnchors())
	if err != nil {
		return nil, d.wrapError("decoding", err)
	}
	if v == nil {
		return nil, nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, d.wrapError("decoding", &syntaxError{msg: fmt.Sprintf("expected a mapping and found %s", describeKind(v)), line: d.Line()})
	}
	return m, nil
}

// wrapError names the file and the line of an error.
func (d *Document) wrapError(doing string, err error) error {
	err = atLine(err, d.text, d.line)
	if se := asSyntaxError(err); se != nil && d.path != "" {
		return fmt.Errorf("%s %s:%d: %w", doing, d.path, se.line, &syntaxError{msg: se.msg})
	}
	return fmt.Errorf("%s document %d: %w", doing, d.index+1, err)
}

func describeKind(v any) string {
	switch v.(type) {
	case []any:
		return "a list"
	case string:
		return "text"
	case nil:
		return "nothing"
	}
	return "a scalar"
}

// parseNodes returns the document's nodes; nil without content.
func (d *Document) parseNodes() (*yamlNode, error) {
	return parseText(d.text, d.col0, d.parent, d.inFlow, d.outerAnchors())
}

// listAnchors holds the anchors of a list for the elements that have aliases of them. The list is parsed once, when the
// first element asks.
type listAnchors struct {
	once   sync.Once
	byName map[string][]*yamlNode
}

// outerAnchors finds anchors outside a list element, in the part of the list before it.
func (d *Document) outerAnchors() func(string) *yamlNode {
	if d.anchors == nil {
		return nil
	}
	return func(name string) *yamlNode {
		d.anchors.once.Do(func() {
			root, err := d.list.parseNodes()
			if err != nil {
				return
			}
			d.anchors.byName = map[string][]*yamlNode{}
			walkNodes(root, func(n *yamlNode) {
				if n.anchor != "" {
					d.anchors.byName[n.anchor] = append(d.anchors.byName[n.anchor], n)
				}
			})
		})
		all := d.anchors.byName[name]
		i := sort.Search(len(all), func(i int) bool { return all[i].start >= d.start })
		for i--; i >= 0; i-- {
			if all[i].end <= d.start {
				return all[i]
			}
		}
		return nil
	}
}

// walkNodes calls f for every node in the order of the text.
func walkNodes(n *yamlNode, f func(*yamlNode)) {
	f(n)
	for c := n.first; c != nil; c = c.next {
		walkNodes(c, f)
	}
}

// checkJSON refuses several JSON values one after the other, with the place of the second.
func (d *Document) checkJSON() error {
	i := d.contentStart()
	if i == len(d.text) || d.text[i] != '{' {
		return nil
	}
	end, ok := flowEnd(d.text, i)
	if !ok {
		return nil
	}
	rest := strings.TrimLeft(d.text[end:], " \t\r\n")
	if rest == "" || rest[0] != '{' && rest[0] != '[' {
		return nil
	}
	off := len(d.text) - len(rest)
	line := d.line + strings.Count(d.text[:off], "\n")
	return &SecondValueError{Path: d.path, Line: line}
}

// SecondValueError reports several JSON values in one document, as files of JSON lines have them.
type SecondValueError struct {
	Path string
	Line int // of the second value, from 1
}

func (e *SecondValueError) Error() string {
	return fmt.Sprintf("reading %s:%d: found a second JSON value in one document; put a line with --- between them", e.Path, e.Line)
}
