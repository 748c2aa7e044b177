// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

// encoder writes proto JSON: fields in the order of their declaration, without space, zero values left out.
type encoder struct {
	out bytes.Buffer
	// keepEmpty writes lists and maps that are set but empty, as Istio's JSON did up to 1.13.
	keepEmpty bool
}

// marshalJSON returns the proto JSON of a message; null for a nil one.
func marshalJSON(m any) ([]byte, error) {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return []byte("null"), nil
	}
	e := encoder{}
	if err := e.encodeMessage(v.Elem()); err != nil {
		return nil, err
	}
	return e.out.Bytes(), nil
}

func (e *encoder) encodeMessage(v reflect.Value) error {
	e.out.WriteByte('{')
	first := true
	for _, f := range fieldsOf(v.Type()) {
		field := v.Field(f.index)
		if e.skipsField(field) {
			continue
		}
		if !first {
			e.out.WriteByte(',')
		}
		first = false
		e.out.WriteByte('"')
		e.out.WriteString(f.json)
		e.out.WriteString(`":`)
		if err := e.encodeValue(field); err != nil {
			return fmt.Errorf("%s: %w", f.json, err)
		}
	}
	e.out.WriteByte('}')
	return nil
}

func (e *encoder) skipsField(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.IsNil() || v.Len() == 0 && !e.keepEmpty
	default:
		return v.IsZero()
	}
}

func (e *encoder) encodeValue(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		return e.encodePointer(v)
	case reflect.Slice:
		return e.encodeList(v)
	case reflect.Map:
		return e.encodeMap(v)
	default:
		return e.encodeScalar(v)
	}
}

func (e *encoder) encodePointer(v reflect.Value) error {
	switch x := v.Interface().(type) {
	case *Duration:
		e.out.WriteString(x.protoJSONString())
		return nil
	case *Int64Value:
		e.out.WriteString(strconv.Quote(strconv.FormatInt(x.GetValue(), 10)))
		return nil
	case *BoolValue, *Int32Value, *UInt32Value:
		return e.encodeScalar(v.Elem().Field(0))
	}
	if v.IsNil() {
		e.out.WriteString("null")
		return nil
	}
	if v.Elem().Kind() != reflect.Struct {
		return e.encodeScalar(v.Elem())
	}
	return e.encodeMessage(v.Elem())
}

func (e *encoder) encodeList(v reflect.Value) error {
	e.out.WriteByte('[')
	for i := 0; i < v.Len(); i++ {
		if i > 0 {
			e.out.WriteByte(',')
		}
		if err := e.encodeValue(v.Index(i)); err != nil {
			return err
		}
	}
	e.out.WriteByte(']')
	return nil
}

func (e *encoder) encodeMap(v reflect.Value) error {
	if s, ok := v.Interface().(Struct); ok {
		return e.encodeAsJSON(map[string]any(s))
	}
	keys := make([]string, 0, v.Len())
	for _, k := range v.MapKeys() {
		keys = append(keys, k.String())
	}
	sort.Strings(keys)
	e.out.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			e.out.WriteByte(',')
		}
		if err := e.encodeAsJSON(key); err != nil {
			return err
		}
		e.out.WriteByte(':')
		if err := e.encodeValue(v.MapIndex(reflect.ValueOf(key))); err != nil {
			return err
		}
	}
	e.out.WriteByte('}')
	return nil
}

func (e *encoder) encodeScalar(v reflect.Value) error {
	if x, ok := v.Interface().(enum); ok {
		n := int32(v.Int())
		if name := x.names().nameOfValue(n); name != strconv.Itoa(int(n)) {
			return e.encodeAsJSON(name)
		}
		return e.encodeAsJSON(n)
	}
	if v.Kind() == reflect.Int64 {
		return e.encodeAsJSON(strconv.FormatInt(v.Int(), 10))
	}
	return e.encodeAsJSON(v.Interface())
}

func (e *encoder) encodeAsJSON(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	e.out.Write(data)
	return nil
}

// protoJSONString returns the duration in proto JSON: seconds with 0, 3, 6 or 9 digits after the point.
func (d *Duration) protoJSONString() string {
	seconds, nanos, sign := d.Seconds, d.Nanos, ""
	if seconds < 0 || nanos < 0 {
		seconds, nanos, sign = -seconds, -nanos, "-"
	}
	s := fmt.Sprintf("%s%d.%09d", sign, seconds, nanos)
	s = strings.TrimSuffix(s, "000")
	s = strings.TrimSuffix(s, "000")
	s = strings.TrimSuffix(s, ".000")
	return `"` + s + `s"`
}
