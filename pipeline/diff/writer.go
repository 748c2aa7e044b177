// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"fmt"
)

// writer turns edits into hunks. It holds no more than one hunk.
type writer struct {
	out bytes.Buffer

	// The number of lines that are behind us on either side.
	old, new int
	// The unchanged lines since the last change: all of them while a hunk is open, else the last ones.
	since [][]byte

	open             bool
	hunk             bytes.Buffer
	oldFrom, newFrom int
	oldLen, newLen   int
}

// same passes a piece that did not change.
func (w *writer) same(b []byte) {
	ls := lines(edge(b, context*2+1))
	if whole := bytes.Count(b, []byte("\n")); whole > 4*context+4 {
		for _, l := range ls[:2*context+1] {
			w.keep(l)
		}
		tail := lines(b[tailStart(b, context):])
		w.old += whole + unterminated(b) - 2*context - 1 - len(tail)
		w.new += whole + unterminated(b) - 2*context - 1 - len(tail)
		for _, l := range tail {
			w.keep(l)
		}
		return
	}
	for _, l := range lines(b) {
		w.keep(l)
	}
}

func unterminated(b []byte) int {
	if open(b) {
		return 1
	}
	return 0
}

// edge is the first n lines.
func edge(b []byte, n int) []byte {
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
	if !open(b) {
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

// edit passes one run of lines.
func (w *writer) edit(e edit) {
	for _, l := range e.lines {
		if e.kind == equal {
			w.keep(l)
		} else {
			w.change(e.kind, l)
		}
	}
}

func (w *writer) keep(line []byte) {
	w.old++
	w.new++
	w.since = append(w.since, line)
	if w.open && len(w.since) > 2*context {
		w.close()
	}
	if !w.open && len(w.since) > context {
		w.since = w.since[len(w.since)-context:]
	}
}

func (w *writer) change(k kind, line []byte) {
	if !w.open {
		w.open = true
		w.oldFrom, w.newFrom = w.old-len(w.since)+1, w.new-len(w.since)+1
	}
	w.flush(len(w.since))
	w.since = w.since[:0]
	w.put(k, line)
	if k == remove {
		w.old++
	} else {
		w.new++
	}
}

// flush writes the first n of the unchanged lines into the hunk.
func (w *writer) flush(n int) {
	for _, l := range w.since[:n] {
		w.put(equal, l)
	}
}

func (w *writer) put(k kind, line []byte) {
	if k != add {
		w.oldLen++
	}
	if k != remove {
		w.newLen++
	}
	w.hunk.WriteByte(byte(k))
	w.hunk.Write(line)
	if open(line) || len(line) == 0 {
		w.hunk.WriteString("\n\\ No newline at end of file\n")
	}
}

// close ends the hunk.
func (w *writer) close() {
	w.flush(min(context, len(w.since)))
	fmt.Fprintf(&w.out, "@@ -%s +%s @@\n", span(w.oldFrom, w.oldLen), span(w.newFrom, w.newLen))
	w.out.Write(w.hunk.Bytes())
	w.hunk.Reset()
	w.open, w.oldLen, w.newLen = false, 0, 0
}

func (w *writer) end() {
	if w.open {
		w.close()
	}
}

// span is a range of lines as GNU diff writes it: an empty one names the line before it.
func span(from, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", from-1)
	case 1:
		return fmt.Sprintf("%d", from)
	}
	return fmt.Sprintf("%d,%d", from, n)
}
