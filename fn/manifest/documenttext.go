// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"sort"
	"strings"
	"sync"
)

// documentText is the text of a document. That of an element of a list is a part of the list's text.
type documentText struct {
	text string
	line int // of the first byte of text in the file, from 1

	list    *Document // nil for whole documents
	col0    int       // column of the first byte of text
	parent  int       // column of the dash before it, -1 for whole documents
	inFlow  bool
	start   int // the text is list.text[start:end]
	end     int
	anchors *listAnchors
}

// contentLine returns the line of the first content; false without any.
func (d *documentText) contentLine() (line int, ok bool) {
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

// contentStart returns the offset of the first token, or the end of the text if the document start has a token on
// its own line or follows directives.
func (d *documentText) contentStart() int {
	i := 0
	if d.list == nil {
		i = len(d.text) - len(strings.TrimPrefix(d.text, "\ufeff"))
	}
	for i < len(d.text) {
		l := d.text[i:]
		if d.list == nil && isMarker(l) && (i == 0 || d.text[i-1] == '\n' || i == 3) {
			if c := firstNonBlank(d.text[i+3 : lineEnd(d.text, i)]); l[0] != '-' || c != 0 && c != '#' && c != '{' {
				return len(d.text)
			} else if c == '{' {
				return i + 3 + strings.IndexByte(l[3:], '{')
			}
		} else if c := firstNonBlank(l[:lineEnd(l, 0)]); c == '%' {
			return len(d.text)
		} else if c != 0 && c != '#' {
			return i + strings.IndexByte(l, c)
		}
		n := strings.IndexByte(l, '\n')
		if n < 0 {
			break
		}
		i += n + 1
	}
	return len(d.text)
}

// parseNodes returns the text's nodes.
func (d *documentText) parseNodes() (*yamlNode, error) {
	return parseText(d.text, d.col0, d.parent, d.inFlow, d.outerAnchors())
}

// parseWith returns the nodes of a text in the place of the document's, in a store.
func (d *documentText) parseWith(store *nodeStore, text string) (*yamlNode, error) {
	return parseInto(store, text, d.col0, d.parent, d.inFlow, d.outerAnchors())
}

func (d *documentText) decode() (any, error) {
	return decodeText(d.text, d.col0, d.parent, d.inFlow, d.outerAnchors())
}

// decodesToValue reports whether the text certainly decodes to a value. It compares the nodes with the value and
// makes no values of them, which is half the work. What is rare (aliases, merge keys, tags, text that only the other
// parser reads) it leaves to decoding: false means that it is not certain.
func (d *documentText) decodesToValue(want any) bool {
	store := nodeStores.Get().(*nodeStore)
	defer store.releaseNodes()
	root, err := d.parseWith(store, d.text)
	return err == nil && nodeHolds(root, want)
}

// hasAnchors reports whether other documents of the list may refer to this one.
func (d *documentText) hasAnchors() bool {
	if strings.IndexByte(d.text, '&') < 0 {
		return false
	}
	root, err := d.parseNodes()
	if err != nil {
		return true
	}
	found := false
	walkNodes(root, func(n *yamlNode) { found = found || n.anchor != "" })
	return found
}

// listAnchors holds the anchors of a list for the elements that have aliases of them. The list is parsed once, when the
// first element asks.
type listAnchors struct {
	once   sync.Once
	byName map[string][]*yamlNode
}

func (a *listAnchors) readList(list *Document) {
	root, err := list.parseNodes()
	if err != nil {
		return
	}
	a.byName = map[string][]*yamlNode{}
	walkNodes(root, func(n *yamlNode) {
		if n.anchor != "" {
			a.byName[n.anchor] = append(a.byName[n.anchor], n)
		}
	})
}

// outerAnchors finds anchors outside a list element, in the part of the list before it.
func (d *documentText) outerAnchors() func(string) *yamlNode {
	if d.anchors == nil {
		return nil
	}
	return func(name string) *yamlNode {
		d.anchors.once.Do(func() { d.anchors.readList(d.list) })
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
