// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"
)

// Document is one document of a stream, or one element of a list in it. It is immutable and safe for concurrent use.
type Document struct {
	path  string
	index int
	documentText
	// filling is what the text was made of, where it was made of a mould.
	filling *filling
}

func newDocument(path string, index, line int, text string) *Document {
	return &Document{path: path, index: index, documentText: documentText{text: text, line: line, parent: -1}}
}

// Raw returns the document's bytes. Those of a list element start after its dash, and its further lines have the
// indentation of the list.
func (d *documentText) Raw() []byte { return []byte(d.text) }

// Text returns the same bytes as a string, without a copy.
func (d *documentText) Text() string { return d.text }

// Contains reports whether a text is anywhere in the document's bytes.
func (d *documentText) Contains(text string) bool { return strings.Contains(d.text, text) }

// Index is the position of the document in its stream, or of the element in its list, from 0.
func (d *Document) Index() int { return d.index }

// Path is the name of the file that contains the document, as passed to Parse.
func (d *Document) Path() string { return d.path }

// Line is the line of the document's first content in the file, from 1; comments, directives and the document start
// do not count as content. For a document without content it is the document's first line.
func (d *documentText) Line() int {
	if line, ok := d.contentLine(); ok {
		return line
	}
	return d.line
}

// String names the document in messages: file and line.
func (d *Document) String() string {
	if d.path == "" {
		return fmt.Sprintf("line %d", d.Line())
	}
	return fmt.Sprintf("%s:%d", d.path, d.Line())
}

// Empty reports whether the document has no content, only blanks, comments and directives.
func (d *documentText) Empty() bool {
	_, ok := d.contentLine()
	return !ok
}

// Object decodes the document as Kubernetes reads it, see Decode. It returns nil for a document without content,
// and an error for one that is not a mapping.
func (d *Document) Object() (map[string]any, error) {
	v, err := d.decodeAny()
	if err != nil || v == nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, d.wrapError("decoding", &syntaxError{msg: fmt.Sprintf("expected a mapping and found %s", describeKind(v)), line: d.Line()})
	}
	return m, nil
}

// decodeAny is Object for every kind of value.
func (d *Document) decodeAny() (any, error) {
	v, err := d.decode()
	if err != nil {
		return nil, d.wrapError("decoding", err)
	}
	return v, nil
}

// wrapError names the file and the line of an error.
func (d *Document) wrapError(doing string, err error) error {
	err = atLine(explainText(err, d.text, d.line), d.text, d.line)
	if se := asSyntaxError(err); se != nil && d.path != "" {
		return fmt.Errorf("%s %s:%d: %w", doing, d.path, se.line, &syntaxError{msg: se.msg})
	}
	return fmt.Errorf("%s document %d: %w", doing, d.index+1, err)
}

// explainText returns an error that names what a text is instead of a manifest, where that is known, or a space that is none.
func explainText(err error, text string, line int) error {
	if asSyntaxError(err) == nil {
		return err
	}
	start := strings.ToLower(strings.TrimSpace(text[:min(len(text), 100)]))
	switch {
	case strings.HasPrefix(start, "version https://git-lfs"):
		return &syntaxError{line: line, msg: "it is a pointer of Git LFS and not the file itself; fetch that with git lfs pull"}
	case strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<html") || strings.HasPrefix(start, "<?xml"):
		return &syntaxError{line: line, msg: "it is HTML or XML and no manifest; a page of an error may have been saved instead of the file"}
	}
	before, _, found := strings.Cut(text, "\u00a0")
	if found && strings.TrimLeft(before[strings.LastIndexByte(before, '\n')+1:], " ") == "" {
		return &syntaxError{line: line + strings.Count(before, "\n"), msg: "the line is indented with a non-breaking space (U+00A0); replace it by a space"}
	}
	return err
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
