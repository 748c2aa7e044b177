// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"io"
	"slices"
	"strings"
)

// Mould is a text with gaps, which many documents have in common. It is immutable and safe for concurrent use.
type Mould struct {
	pieces []string // one more than gaps
	gaps   []int    // the number of the value in each
	size   int      // of the pieces
}

// NewMould returns the mould of pieces with a gap between each two; gaps has the number of the value for each.
func NewMould(pieces []string, gaps []int) *Mould {
	m := &Mould{pieces: pieces, gaps: gaps}
	for _, p := range pieces {
		m.size += len(p)
	}
	return m
}

// CutMould returns the mould of a text with gaps where the values are, each with the number of the value.
func CutMould(text string, values []string, numbers []int) *Mould {
	type place struct{ at, value int }
	var found []place
	for i, v := range values {
		for from := 0; ; {
			at := strings.Index(text[from:], v)
			if at < 0 {
				break
			}
			found = append(found, place{from + at, i})
			from += at + 1
		}
	}
	slices.SortStableFunc(found, func(a, b place) int { return a.at - b.at })
	var pieces []string
	var gaps []int
	end := 0
	for _, p := range found {
		if p.at < end {
			continue // it overlaps the one before
		}
		pieces, gaps = append(pieces, strings.Clone(text[end:p.at])), append(gaps, numbers[p.value])
		end = p.at + len(values[p.value])
	}
	return NewMould(append(pieces, strings.Clone(text[end:])), gaps)
}

// Text returns the text with these values in the gaps.
func (m *Mould) Text(values []string) string {
	if len(m.gaps) == 0 {
		return m.pieces[0]
	}
	size := m.size
	for _, n := range m.gaps {
		size += len(values[n])
	}
	var b strings.Builder
	b.Grow(size)
	_ = m.writeTo(&b, values) // a builder does not fail
	return b.String()
}

func (m *Mould) writeTo(w io.StringWriter, values []string) error {
	for i, piece := range m.pieces {
		if i > 0 {
			if _, err := w.WriteString(values[m.gaps[i-1]]); err != nil {
				return err
			}
		}
		if _, err := w.WriteString(piece); err != nil {
			return err
		}
	}
	return nil
}

// filling is the mould and the values that a text is made of.
type filling struct {
	mould  *Mould
	values []string
	text   string // "" where the document has no text yet
}

// filledFrom returns what the document's text is made of, without the text, or nil where it is of no mould.
func (d *Document) filledFrom() *filling {
	if d.filling == nil || d.filling.text != d.text {
		return nil // it was edited since
	}
	return &filling{mould: d.filling.mould, values: d.filling.values}
}

// FillLater returns the document that a mould makes with these values, which must not be changed, without its text. [Changes] takes it as it
// is; Filled makes the text.
func (d *Document) FillLater(m *Mould, values []string) *Document {
	next := d.Rewritten("")
	next.filling = &filling{mould: m, values: values}
	return next
}

// Filled returns the document with its text, which is the document itself but for those of FillLater.
func (d *Document) Filled() *Document {
	if d.filling == nil || d.text != "" || d.filling.text != "" {
		return d
	}
	f := d.filling
	next := d.Rewritten(f.mould.Text(f.values))
	next.filling = &filling{f.mould, f.values, next.text}
	return next
}

// Rewritten returns the document with another text, which must hold one document that is written at the same column.
func (d *Document) Rewritten(text string) *Document {
	next := *d
	next.text, next.filling = text, nil
	return &next
}

// Block returns the column of the document's first byte, where its text does not depend on the list around it: ok is false for an element
// of a list in flow style.
func (d *Document) Block() (column int, ok bool) { return d.col0, !d.inFlow }

// PlainSafe reports whether a text is written without quotes, and read as a string without them by each version of YAML.
func PlainSafe(s string) bool { return s != "" && plainSafe(s, false) }

// IsFilled reports whether the document's text was made of a mould.
func (d *Document) IsFilled() bool { return d.filledFrom() != nil }
