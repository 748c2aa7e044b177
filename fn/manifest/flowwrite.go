// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// flowWriter writes flow style: JSON where json is set, in several lines where step is not 0.
type flowWriter struct {
	json  bool
	tight bool // no blanks after colons and commas
	nl    string
	unit  string // indentation of one level, "" for all on one line
}

func (w flowWriter) text(v any, pad string) string {
	var b strings.Builder
	w.write(&b, v, pad, false)
	return b.String()
}

// write appends a value; pad is the indentation of the line that it starts in.
func (w flowWriter) write(b *strings.Builder, v any, pad string, element bool) {
	if empty(v) {
		b.WriteString(w.scalar(v))
		return
	}
	inner := pad + w.unit
	sep := func(i int) {
		if i > 0 {
			b.WriteByte(',')
		}
		if w.unit != "" {
			b.WriteString(w.nl + inner)
		} else if i > 0 && !w.tight {
			b.WriteByte(' ')
		}
	}
	closing := "]"
	switch v := v.(type) {
	case map[string]any:
		closing = "}"
		b.WriteByte('{')
		for i, k := range sortedKeys(v, element) {
			sep(i)
			b.WriteString(w.entry(k, v[k], inner))
		}
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			sep(i)
			w.write(b, e, inner, true)
		}
	}
	if w.unit != "" {
		b.WriteString(w.nl + pad)
	}
	b.WriteString(closing)
}

func (w flowWriter) entry(k string, v any, pad string) string {
	var b strings.Builder
	if w.json {
		b.WriteString(doubleQuoted(k))
	} else {
		b.WriteString(quoteString(k, true, plainStyle))
	}
	b.WriteByte(':')
	if !w.tight || !w.json {
		b.WriteByte(' ')
	}
	w.write(&b, v, pad, false)
	return b.String()
}

func (w flowWriter) scalar(v any) string {
	if w.json {
		return scalarText(v, true, doubleStyle)
	}
	return scalarText(v, true, plainStyle)
}
