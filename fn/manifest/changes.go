// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"io"
	"strings"
	"sync"
)

// Changes keeps documents that take the place of others, by the index of these, in little memory: each line that they have in common
// is kept once. What is injected into a thousand workloads differs in a few lines. It is safe for concurrent use.
type Changes struct {
	mu    sync.Mutex
	known map[string]uint32
	lines []string
	docs  []packedDocument
}

// packedDocument is a document whose text is in lines, or in its filling; the zero value is none.
type packedDocument struct {
	doc   *Document // without its text
	lines []uint32
}

// NewChanges returns Changes for n documents, none of which has changed.
func NewChanges(n int) *Changes {
	return &Changes{known: map[string]uint32{}, docs: make([]packedDocument, n)}
}

// Put keeps what the document at an index has become.
func (c *Changes) Put(i int, d *Document) {
	without := *d
	without.text = ""
	if without.filling = d.filledFrom(); without.filling != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.docs[i] = packedDocument{doc: &without}
		return
	}
	packed := packedDocument{doc: &without, lines: make([]uint32, 0, strings.Count(d.text, "\n")+1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	for line := range strings.Lines(d.text) {
		id, ok := c.known[line]
		if !ok {
			line = strings.Clone(line) // a part of the text would keep all of it
			id = uint32(len(c.lines))
			c.known[line], c.lines = id, append(c.lines, line)
		}
		packed.lines = append(packed.lines, id)
	}
	c.docs[i] = packed
}

// Document returns the changed document at an index, a new value for each call; nil if it has not changed.
func (c *Changes) Document(i int) *Document {
	c.mu.Lock()
	defer c.mu.Unlock()
	packed := c.docs[i]
	if packed.doc == nil {
		return nil
	}
	d := *packed.doc
	if f := d.filling; f != nil {
		d.text, d.filling = f.mould.Text(f.values), nil
		return &d
	}
	size := 0
	for _, id := range packed.lines {
		size += len(c.lines[id])
	}
	var b strings.Builder
	b.Grow(size)
	for _, id := range packed.lines {
		b.WriteString(c.lines[id])
	}
	d.text = b.String()
	return &d
}

// Or returns what the document at an index has become, and d where it has not changed.
func (c *Changes) Or(i int, d *Document) *Document {
	if changed := c.Document(i); changed != nil {
		return changed
	}
	return d
}

// Changed reports whether the document at an index has changed.
func (c *Changes) Changed(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.docs[i].doc != nil
}

// WriteText writes the text of the document at an index, which is d where it has not changed.
func (c *Changes) WriteText(w io.StringWriter, i int, d *Document) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	packed := c.docs[i]
	if packed.doc == nil {
		_, err := w.WriteString(d.text)
		return err
	}
	if f := packed.doc.filling; f != nil {
		return f.mould.writeTo(w, f.values)
	}
	for _, id := range packed.lines {
		if _, err := w.WriteString(c.lines[id]); err != nil {
			return err
		}
	}
	return nil
}
