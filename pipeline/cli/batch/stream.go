// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"bufio"
	"bytes"
	"io"
)

// Stream returns the output of all files except the incomplete ones, concatenated as one stream of documents.
func (b *Batch) Stream() []byte {
	var out bytes.Buffer
	_ = b.WriteStream(&out) // writes to memory do not fail
	return out.Bytes()
}

// WriteStream writes the result of Stream, a document at a time.
func (b *Batch) WriteStream(w io.Writer) error {
	out := &streamWriter{w: bufio.NewWriterSize(w, 64<<10)}
	for _, f := range b.Files {
		keep, ok := f.keepsClusterDocuments()
		switch {
		case !ok, f.incomplete:
		case len(b.Files) == 1:
			return f.writeKeptDocuments(w, keep)
		default:
			out.putDocument(f.keptContent(keep))
		}
	}
	return out.w.Flush()
}

// bom may be at the start of a file, but not within a stream.
var bom = []byte("\ufeff")

// streamWriter writes documents. The error of the buffered writer stays until Flush.
type streamWriter struct {
	w    *bufio.Writer
	last byte // that was written, 0 for none: documents have no such byte
}

// putDocument adds a document start between two documents if it is missing.
func (s *streamWriter) putDocument(doc []byte) {
	if len(bytes.TrimSpace(doc)) == 0 {
		return
	}
	if s.last == 0 {
		s.put(doc)
		return
	}
	doc = bytes.TrimPrefix(doc, bom)
	if s.last != '\n' {
		s.putString("\n")
	}
	switch {
	case bytes.HasPrefix(doc, []byte("%")):
		s.putString("...\n") // a directive is only read after a document end
	case !startsDocument(doc):
		s.putString("---\n")
	}
	s.put(doc)
}

func (s *streamWriter) put(b []byte) {
	if len(b) > 0 {
		_, _ = s.w.Write(b)
		s.last = b[len(b)-1]
	}
}

func (s *streamWriter) putString(text string) {
	if text != "" {
		_, _ = s.w.WriteString(text)
		s.last = text[len(text)-1]
	}
}

// WriteString is putString.
func (s *streamWriter) WriteString(text string) (int, error) {
	s.putString(text)
	return len(text), nil
}

// startsDocument reports whether the first line is a document start.
func startsDocument(doc []byte) bool {
	rest, ok := bytes.CutPrefix(doc, []byte("---"))
	return ok && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n"))
}
