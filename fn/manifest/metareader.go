// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// metaReader reads the fields that identify an object from the lines of a mapping in block style. Its functions report
// false for lines that it is not sure about.
type metaReader struct {
	Meta
	seen   [5]bool
	top    int  // column of the object's keys, -1 until it is known
	inner  int  // column of the keys of metadata, -1 until it is known
	inMeta bool // the current key is metadata
	keyed  bool // a key has been read
}

// peekBlock scans block style; first is the offset of the first token.
func peekBlock(d *documentText, first int) (m Meta, sure bool) {
	bol := lineStart(d.text, first)
	l := newLineScanner(d.text[bol:], 0)
	if bol == 0 {
		l.col0 = d.col0
		l.s = strings.TrimPrefix(d.text, "\ufeff")
	}
	r := metaReader{top: -1, inner: -1}
	for l.nextLine() {
		if !r.readLine(l) {
			return Meta{}, false
		}
	}
	return r.Meta, !l.unsure
}

func (r *metaReader) readLine(l *lineScanner) bool {
	if r.top < 0 {
		r.top = l.col
	}
	switch {
	case l.col < r.top:
		return false
	case l.col == r.top && isDash(l.s, l.off): // a list that is not indented below its key
		return r.keyed && !r.inMeta
	case l.col == r.top:
		return r.readKey(l)
	case r.inMeta && r.inner < 0:
		r.inner = l.col
		return r.readMetaKey(l)
	case r.inMeta && l.col == r.inner:
		return isDash(l.s, l.off) || r.readMetaKey(l)
	}
	return !r.inMeta || l.col > r.inner
}

func (r *metaReader) readKey(l *lineScanner) bool {
	r.keyed, r.inMeta = true, false
	key, val := l.keyValue()
	switch key {
	case "apiVersion":
		return r.readOnce(0, val, &r.APIVersion)
	case "kind":
		return r.readOnce(1, val, &r.Kind)
	case "metadata":
		if r.seen[2] {
			return false
		}
		r.seen[2] = true
		r.inMeta, r.inner = val == "", -1
		return metaValue(val, &r.Meta)
	}
	return key != ""
}

func (r *metaReader) readMetaKey(l *lineScanner) bool {
	key, val := l.keyValue()
	switch key {
	case "name":
		return r.readOnce(3, val, &r.Name)
	case "namespace":
		return r.readOnce(4, val, &r.Namespace)
	}
	return key != ""
}

// readOnce reads the text of a field, which must not repeat.
func (r *metaReader) readOnce(field int, val string, out *string) bool {
	if r.seen[field] {
		return false
	}
	r.seen[field] = true
	return readSimple(val, out)
}
