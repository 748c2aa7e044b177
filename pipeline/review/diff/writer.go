// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"fmt"
)

// hunkWriter turns edits into hunks. It holds no more than one hunk.
type hunkWriter struct {
	out bytes.Buffer

	// The number of lines that are behind us on either side.
	old, new int
	// The unchanged lines since the last change: all of them while a hunk is open, otherwise only the last ones.
	since [][]byte

	open             bool
	hunk             bytes.Buffer
	oldFrom, newFrom int
	oldLen, newLen   int
}

// addUnchanged passes a piece that did not change.
func (w *hunkWriter) addUnchanged(b []byte) {
	ls := splitLines(firstLines(b, context*2+1))
	if whole := bytes.Count(b, []byte("\n")); whole > 4*context+4 {
		for _, l := range ls[:2*context+1] {
			w.keepLine(l)
		}
		tail := splitLines(b[tailStart(b, context):])
		w.old += whole + missingLineEndCount(b) - 2*context - 1 - len(tail)
		w.new += whole + missingLineEndCount(b) - 2*context - 1 - len(tail)
		for _, l := range tail {
			w.keepLine(l)
		}
		return
	}
	for _, l := range splitLines(b) {
		w.keepLine(l)
	}
}

func missingLineEndCount(b []byte) int {
	if lacksLineEnd(b) {
		return 1
	}
	return 0
}

// firstLines is the first n lines.
func firstLines(b []byte, n int) []byte {
	at := 0
	for range n {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return b
		}
		at += i + 1
	}
	return b[:at]
}

// tailStart is where the last n lines begin.
func tailStart(b []byte, n int) int {
	at := len(b)
	if !lacksLineEnd(b) {
		at--
	}
	for range n {
		i := bytes.LastIndexByte(b[:at], '\n')
		if i < 0 {
			return 0
		}
		at = i
	}
	return at + 1
}

// addEdit passes one run of lines.
func (w *hunkWriter) addEdit(e lineEdit) {
	for _, l := range e.lines {
		if e.kind == equal {
			w.keepLine(l)
		} else {
			w.changeLine(e.kind, l)
		}
	}
}

func (w *hunkWriter) keepLine(line []byte) {
	w.old++
	w.new++
	w.since = append(w.since, line)
	if w.open && len(w.since) > 2*context {
		w.closeHunk()
	}
	if !w.open && len(w.since) > context {
		w.since = w.since[len(w.since)-context:]
	}
}

func (w *hunkWriter) changeLine(k editKind, line []byte) {
	if !w.open {
		w.open = true
		w.oldFrom, w.newFrom = w.old-len(w.since)+1, w.new-len(w.since)+1
	}
	w.flushContext(len(w.since))
	w.since = w.since[:0]
	w.putLine(k, line)
	if k == remove {
		w.old++
	} else {
		w.new++
	}
}

// flushContext writes the first n of the unchanged lines into the hunk.
func (w *hunkWriter) flushContext(n int) {
	for _, l := range w.since[:n] {
		w.putLine(equal, l)
	}
}

func (w *hunkWriter) putLine(k editKind, line []byte) {
	if k != add {
		w.oldLen++
	}
	if k != remove {
		w.newLen++
	}
	w.hunk.WriteByte(byte(k))
	w.hunk.Write(line)
	if lacksLineEnd(line) || len(line) == 0 {
		w.hunk.WriteString("\n\\ No newline at end of file\n")
	}
}

// closeHunk ends the hunk.
func (w *hunkWriter) closeHunk() {
	w.flushContext(min(context, len(w.since)))
	fmt.Fprintf(&w.out, "@@ -%s +%s @@\n", rangeText(w.oldFrom, w.oldLen), rangeText(w.newFrom, w.newLen))
	w.out.Write(w.hunk.Bytes())
	w.hunk.Reset()
	w.open, w.oldLen, w.newLen = false, 0, 0
}

func (w *hunkWriter) closeOpenHunk() {
	if w.open {
		w.closeHunk()
	}
}

// rangeText is a range of lines as GNU diff writes it: an empty one names the line before it.
func rangeText(from, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", from-1)
	case 1:
		return fmt.Sprintf("%d", from)
	}
	return fmt.Sprintf("%d,%d", from, n)
}
