// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package diff writes the difference between two versions of a file as a unified diff that patch and git apply can
// read. It accesses only its arguments.
//
// A file is compared piece by piece, as a stream of documents keeps its documents and their order: lines that many
// documents have in common cannot be matched across documents, and a document that did not change has no cost.
package diff

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
)

// context is the number of unchanged lines around a change, as diff -u and git diff have it.
const context = 3

// Chunk is a piece of a file before and after. The pieces of a file in their order are the file; all but the last end
// with a line end on both sides, or are empty.
type Chunk struct {
	Old, New []byte
}

// Unified returns the difference between the old and the new chunks of the file name, empty if they are equal.
// The file is named a/name and b/name in the header, as git does. Applying the script to the old bytes yields the
// new ones.
func Unified(name string, chunks []Chunk) []byte {
	w := &hunkWriter{}
	for _, c := range joinChunks(chunks) {
		if bytes.Equal(c.Old, c.New) {
			w.addUnchanged(c.Old)
			continue
		}
		for _, e := range editScript(splitLines(c.Old), splitLines(c.New)) {
			w.addEdit(e)
		}
	}
	w.closeOpenHunk()
	if w.out.Len() == 0 {
		return nil
	}
	label := headerName(name)
	head := "--- a/" + label + "\n+++ b/" + label + "\n"
	return append([]byte(head), w.out.Bytes()...)
}

// headerName returns the name as written in the header: quoted if it contains characters that would end it, with a
// tab after a name with blanks, as GNU patch requires.
func headerName(name string) string {
	name = strings.TrimLeft(filepath.ToSlash(filepath.Clean(name)), "/")
	switch {
	case strings.ContainsAny(name, "\n\r\t\"\\"), strings.ContainsFunc(name, isControl):
		return quoteName(name)
	case strings.Contains(name, " "):
		return name + "\t"
	}
	return name
}

// joinChunks puts chunks together that a reader could not keep apart: where one does not end with a line end, the next
// line belongs to it.
func joinChunks(chunks []Chunk) []Chunk {
	whole := make([]Chunk, 0, len(chunks))
	for i, c := range chunks {
		if n := len(whole); i > 0 && n > 0 && (lacksLineEnd(whole[n-1].Old) || lacksLineEnd(whole[n-1].New)) {
			last := whole[n-1]
			whole[n-1] = Chunk{Old: concatBytes(last.Old, c.Old), New: concatBytes(last.New, c.New)}
			continue
		}
		whole = append(whole, c)
	}
	return whole
}

func lacksLineEnd(b []byte) bool { return len(b) > 0 && b[len(b)-1] != '\n' }

func concatBytes(a, b []byte) []byte {
	return append(append(make([]byte, 0, len(a)+len(b)), a...), b...)
}

// splitLines splits after each line end. Only the last line may lack one.
func splitLines(b []byte) [][]byte {
	if len(b) == 0 {
		return nil
	}
	ls := bytes.SplitAfter(b, []byte("\n"))
	if len(ls[len(ls)-1]) == 0 {
		ls = ls[:len(ls)-1]
	}
	return ls
}

// Colour returns the diff with the colours of git diff for a terminal.
func Colour(patch []byte) []byte {
	const reset = "\x1b[m"
	var out bytes.Buffer
	for i, line := range splitLines(patch) {
		colour := ""
		switch {
		case i < 2:
			colour = "\x1b[1m"
		case line[0] == '@':
			colour = "\x1b[36m"
		case line[0] == '+':
			colour = "\x1b[32m"
		case line[0] == '-':
			colour = "\x1b[31m"
		}
		if colour == "" {
			out.Write(line)
			continue
		}
		out.WriteString(colour)
		out.Write(bytes.TrimSuffix(line, []byte("\n")))
		out.WriteString(reset + "\n")
	}
	return out.Bytes()
}

// isControl reports whether a terminal obeys a character instead of showing it.
func isControl(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// quoteName writes a name as git does: in octal what is not ASCII or cannot be seen.
func quoteName(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(name) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
