// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Message is a message of the mesh config, or a part of it that is one to protobuf.
type Message interface {
	fmt.Stringer
	// isMessage is a mark.
	isMessage()
}

func (*Duration) isMessage()    {}
func (*BoolValue) isMessage()   {}
func (*Int32Value) isMessage()  {}
func (*UInt32Value) isMessage() {}
func (*Int64Value) isMessage()  {}
func (Struct) isMessage()       {}

// String returns the duration's text form.
func (d *Duration) String() string { return textForm(d) }

// String returns the value's text form.
func (v *BoolValue) String() string { return textForm(v) }

// String returns the value's text form.
func (v *Int32Value) String() string { return textForm(v) }

// String returns the value's text form.
func (v *UInt32Value) String() string { return textForm(v) }

// String returns the value's text form.
func (v *Int64Value) String() string { return textForm(v) }

// String returns the object's text form.
func (s Struct) String() string { return textForm(s) }

// CheckText returns an error where the text form of a message is not the same in every build of istiod. Protobuf's Go code puts
// one or two spaces between the fields of a message, by a checksum of the program (source: prepareNext in
// internal/encoding/text/encode.go of google.golang.org/protobuf v1.36), so that only what has at most one field has one form.
func CheckText(m Message) error {
	if reflect.ValueOf(m).IsNil() {
		return nil
	}
	w := textWriter{}
	w.writeMessageFields(reflect.ValueOf(m))
	if w.separated {
		return fmt.Errorf("it prints the message %s of the mesh config, whose text differs between builds of istiod; print the fields of it that are needed, or use protoToJSON",
			reflect.Indirect(reflect.ValueOf(m)).Type().Name())
	}
	return nil
}

// textForm returns the text form of a message in one line, with one space between fields (source: MarshalOptions.Format of
// encoding/prototext in google.golang.org/protobuf v1.36).
func textForm(m any) string {
	v := reflect.ValueOf(m)
	if (v.Kind() == reflect.Pointer || v.Kind() == reflect.Map) && v.IsNil() {
		return "<nil>"
	}
	w := textWriter{}
	w.writeMessageFields(v)
	return w.out.String()
}

// textWriter writes the text form.
type textWriter struct {
	out strings.Builder
	// separated reports whether a space separates two fields.
	separated bool
	// next reports whether the next field of the message is not its first.
	next bool
}

// writeFieldName writes the name of a field.
func (w *textWriter) writeFieldName(name string) {
	if w.next {
		w.out.WriteByte(' ')
		w.separated = true
	}
	w.out.WriteString(name)
	w.out.WriteByte(':')
	w.next = true
}

// writeMessageFields writes the fields of a message.
func (w *textWriter) writeMessageFields(v reflect.Value) {
	if s, ok := v.Interface().(Struct); ok {
		for range s {
			w.writeFieldName("fields")
			w.out.WriteString("{…}")
			w.separated = true // each has a key and a value
		}
		return
	}
	v = reflect.Indirect(v)
	switch v.Interface().(type) {
	case Duration:
		w.writeWellKnownType(v, "seconds", "nanos")
		return
	case BoolValue, Int32Value, UInt32Value, Int64Value:
		w.writeWellKnownType(v, "value")
		return
	}
	for _, f := range fieldsOf(v.Type()) {
		field := v.Field(f.index)
		switch field.Kind() {
		case reflect.Slice:
			for i := range field.Len() {
				w.writeField(f.proto, field.Index(i))
			}
		case reflect.Map:
			w.writeMapEntries(f.proto, field)
		default:
			if !field.IsZero() {
				w.writeField(f.proto, field)
			}
		}
	}
}

// writeMapEntries writes a map, whose entries are messages with a key and a value; an object of JSON is one message.
func (w *textWriter) writeMapEntries(name string, field reflect.Value) {
	if _, ok := field.Interface().(Struct); ok {
		if !field.IsNil() {
			w.writeField(name, field)
		}
		return
	}
	for range field.Len() {
		w.writeFieldName(name)
		w.out.WriteString("{…}")
		w.separated = true
	}
}

// writeWellKnownType writes a message of protobuf's own.
func (w *textWriter) writeWellKnownType(v reflect.Value, names ...string) {
	for i, name := range names {
		if field := v.Field(i); !field.IsZero() {
			w.writeField(name, field)
		}
	}
}

// writeField writes one field.
func (w *textWriter) writeField(name string, v reflect.Value) {
	w.writeFieldName(name)
	if _, isMessage := v.Interface().(Message); isMessage {
		w.out.WriteByte('{')
		outer := w.next
		w.next = false
		w.writeMessageFields(v)
		w.next = outer
		w.out.WriteByte('}')
		return
	}
	v = reflect.Indirect(v)
	switch v.Kind() {
	case reflect.String:
		w.writeQuotedString(v.String())
	case reflect.Float64:
		w.writeFloat(v.Float())
	default:
		fmt.Fprint(&w.out, v.Interface()) // an enumeration prints its name
	}
}

func (w *textWriter) writeFloat(f float64) {
	switch {
	case math.IsNaN(f):
		w.out.WriteString("nan")
	case math.IsInf(f, 1):
		w.out.WriteString("inf")
	case math.IsInf(f, -1):
		w.out.WriteString("-inf")
	default:
		w.out.WriteString(strconv.FormatFloat(f, 'g', -1, 64))
	}
}

// writeQuotedString writes a string in quotes (source: appendString in internal/encoding/text/encode.go).
func (w *textWriter) writeQuotedString(s string) {
	w.out.WriteByte('"')
	for i, c := range s {
		switch {
		case c == utf8.RuneError && !utf8.ValidString(s[i:i+1]):
			fmt.Fprintf(&w.out, `\x%02x`, s[i])
		case c == '"' || c == '\\':
			w.out.WriteByte('\\')
			w.out.WriteRune(c)
		case c == '\n':
			w.out.WriteString(`\n`)
		case c == '\r':
			w.out.WriteString(`\r`)
		case c == '\t':
			w.out.WriteString(`\t`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&w.out, `\x%02x`, c)
		default:
			w.out.WriteRune(c)
		}
	}
	w.out.WriteByte('"')
}
