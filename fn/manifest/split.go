// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// File is a stream of documents. Path is for messages only.
type File struct {
	Path string
	Docs []*Document
}

// Parse splits a stream of YAML or JSON into its documents; their concatenated raw bytes are src. It decodes no
// document: an error inside a document is reported when its content is read. Parse returns errors for input that is
// not text (NUL bytes, other control characters, invalid UTF-8), and for several JSON values in a row, which no
// YAML reader accepts.
func Parse(path string, src []byte) (*File, error) {
	if err := checkText(path, src); err != nil {
		return nil, err
	}
	return splitDocuments(path, string(src))
}

// ParseShared is Parse for text that is never changed afterwards: the documents share its memory.
func ParseShared(path string, src []byte) (*File, error) {
	if err := checkText(path, src); err != nil {
		return nil, err
	}
	return splitDocuments(path, unsafe.String(unsafe.SliceData(src), len(src)))
}

func splitDocuments(path, text string) (*File, error) {
	f := &File{Path: path}
	line := 1
	for i := 0; len(text) > 0; i++ {
		n := documentEnd(text)
		d := newDocument(path, i, line, text[:n])
		if err := checkSecondValue(d); err != nil {
			return nil, err
		}
		f.Docs = append(f.Docs, d)
		line += strings.Count(text[:n], "\n")
		text = text[n:]
	}
	return f, nil
}

// Bytes returns the stream: the raw bytes of the documents.
func (f *File) Bytes() []byte {
	n := 0
	for _, d := range f.Docs {
		n += len(d.text)
	}
	out := make([]byte, 0, n)
	for i, d := range f.Docs {
		if i > 0 && len(out) > 0 && out[len(out)-1] != '\n' && d.text != "" {
			out = append(out, '\n')
		}
		out = append(out, d.text...)
	}
	return out
}

// documentEnd returns where the first document of a stream ends. Comments and directives before a document start belong
// to the document that it starts. A line that begins with --- is always a document start: YAML allows no such line
// inside a scalar.
func documentEnd(s string) int {
	content, started := false, false
	for i := 0; i < len(s); {
		end := strings.IndexByte(s[i:], '\n') + 1
		if end == 0 {
			end = len(s) - i
		}
		l := s[i : i+end]
		if i == 0 {
			l = strings.TrimPrefix(l, "\ufeff")
		}
		c := firstNonBlank(l)
		switch {
		case isMarker(l) && l[0] == '-':
			if content || started {
				return i
			}
			started = true
			content = firstNonBlank(l[3:]) != 0 && firstNonBlank(l[3:]) != '#'
		case isMarker(l):
			if n := i + end; hasMore(s[n:]) {
				return n
			}
		case c == 0 || c == '#' || c == '%' && l[0] == '%' && !content:
		default:
			content = true
		}
		i += end
	}
	return len(s)
}

// hasMore reports whether anything follows: a document end at the end of the stream begins no further document.
func hasMore(s string) bool { return strings.TrimSpace(s) != "" }

// firstNonBlank returns the first byte of a line that is not blank, or 0.
func firstNonBlank(l string) byte {
	for i := 0; i < len(l); i++ {
		if !isBlankOrEnd(l[i]) {
			return l[i]
		}
	}
	return 0
}

// secondDocument returns where the second document of a stream starts, or -1.
func secondDocument(s string) int {
	if !strings.Contains(s, "\n---") && !strings.Contains(s, "\n...") {
		return -1
	}
	if n := documentEnd(s); n < len(s) {
		return n
	}
	return -1
}

// textByte reports whether YAML allows a byte below 0x80.
func textByte(c byte) bool { return c >= 0x20 && c < 0x7f || c == '\n' || c == '\t' || c == '\r' }

// checkText refuses what is not text.
func checkText(path string, src []byte) error {
	if bytes.HasPrefix(src, []byte{0xff, 0xfe, 0, 0}) || bytes.HasPrefix(src, []byte{0, 0, 0xfe, 0xff}) {
		return newNotTextError(path, src, 0, "the byte order mark of UTF-32; save the file as UTF-8")
	}
	if bytes.HasPrefix(src, []byte{0xff, 0xfe}) || bytes.HasPrefix(src, []byte{0xfe, 0xff}) {
		return newNotTextError(path, src, 0, "the byte order mark of UTF-16; save the file as UTF-8")
	}
	for i := 0; i < len(src); {
		if c := src[i]; c < utf8.RuneSelf {
			if !textByte(c) {
				return newNotTextError(path, src, i, fmt.Sprintf("the byte 0x%02x", c))
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(src[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return newNotTextError(path, src, i, fmt.Sprintf("the byte 0x%02x, which is not UTF-8; save the file as UTF-8", src[i]))
		case r >= 0x80 && r < 0xa0 && r != 0x85, r == 0xfffe, r == 0xffff:
			return newNotTextError(path, src, i, fmt.Sprintf("the control character %U", r))
		}
		i += n
	}
	return nil
}

// NotTextError reports bytes that are not UTF-8 text, or text that YAML does not allow.
type NotTextError struct {
	Path string
	Line int    // from 1
	What string // what was found
}

func (e *NotTextError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("line %d: found %s: this is not YAML or JSON text", e.Line, e.What)
	}
	return fmt.Sprintf("%s:%d: found %s: this is not YAML or JSON text", e.Path, e.Line, e.What)
}

func newNotTextError(path string, src []byte, off int, what string) error {
	return &NotTextError{Path: path, Line: 1 + bytes.Count(src[:off], []byte("\n")), What: what}
}

// checkSecondValue refuses several JSON values one after the other, with the place of the second.
func checkSecondValue(d *Document) error {
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
