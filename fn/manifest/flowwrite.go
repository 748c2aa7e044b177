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

func (w flowWriter) flowText(v any, pad string) string {
	var b strings.Builder
	w.appendValue(&b, v, pad, false)
	return b.String()
}

// appendValue appends a value; pad is the indentation of the line that it starts in.
func (w flowWriter) appendValue(b *strings.Builder, v any, pad string, element bool) {
	if isInline(v) {
		b.WriteString(w.scalarText(v))
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
			b.WriteString(w.entryText(k, v[k], inner))
		}
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			sep(i)
			w.appendValue(b, e, inner, true)
		}
	}
	if w.unit != "" {
		b.WriteString(w.nl + pad)
	}
	b.WriteString(closing)
}

func (w flowWriter) entryText(k string, v any, pad string) string {
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
	w.appendValue(&b, v, pad, false)
	return b.String()
}

func (w flowWriter) scalarText(v any) string {
	if w.json {
		return scalarText(v, true, doubleStyle)
	}
	return scalarText(v, true, plainStyle)
}
