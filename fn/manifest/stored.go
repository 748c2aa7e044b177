// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "errors"

// Stored is a document in a form that can be written down and read again.
type Stored struct {
	// Path and Index are those of the document, Line is the line of its first byte in the file.
	Path  string `json:"path,omitempty"`
	Index int    `json:"index,omitempty"`
	Line  int    `json:"line"`
	// Text is the document's bytes.
	Text string `json:"-"`
}

// Stored returns the serializable form of a document; false for an element of a list, which depends on the list's
// text.
func (d *Document) Stored() (Stored, bool) {
	return Stored{Path: d.path, Index: d.index, Line: d.line, Text: d.text}, d.list == nil
}

// Document returns the document that was stored.
func (s Stored) Document() (*Document, error) {
	if s.Line < 1 || s.Index < 0 {
		return nil, errors.New("reading a stored document: it has no place in a file")
	}
	if err := checkText(s.Path, []byte(s.Text)); err != nil {
		return nil, err
	}
	d := newDocument(s.Path, s.Index, s.Line, s.Text)
	return d, checkSecondValue(d)
}
