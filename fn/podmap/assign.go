// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"encoding/json"
	"reflect"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/prerig/prerig/fn/quantity"
)

// assignDecodedValue sets a zero Go value of the schema's type to the result of decoding the JSON of v. It reports
// false, and leaves the target in an undefined state, for values that it does not handle itself: those that JSON
// rejects or changes, such as a fractional number for an integer field. It exists for speed: the JSON decoder first
// inspects all types that a pod could hold, which is slower than the rest of an injection.
func (s *Schema) assignDecodedValue(v any, target reflect.Value) bool {
	if v == nil {
		return true // null leaves everything as it is
	}
	if target.Kind() == reflect.Pointer {
		p := reflect.New(target.Type().Elem())
		target.Set(p)
		return s.assignDecodedValue(v, p.Elem())
	}
	switch s.Kind {
	case StructKind:
		return s.assignStruct(v, target)
	case mapKind:
		return s.assignMap(v, target)
	case ListKind:
		return s.assignList(v, target)
	case anyKind:
		return assignByItself(v, target)
	default:
		return assignScalar(v, target)
	}
}

func (s *Schema) assignStruct(v any, target reflect.Value) bool {
	m, ok := v.(map[string]any)
	for key, e := range m {
		f := s.Field(key)
		if f == nil {
			continue
		}
		ok = ok && f.Schema.assignDecodedValue(e, target.FieldByIndex(f.index))
	}
	return ok
}

func (s *Schema) assignMap(v any, target reflect.Value) bool {
	m, ok := v.(map[string]any)
	if !ok || target.Type().Key().Kind() != reflect.String {
		return false
	}
	out := reflect.MakeMapWithSize(target.Type(), len(m))
	for key, e := range m {
		elem := reflect.New(target.Type().Elem()).Elem()
		if !utf8.ValidString(key) || !s.Elem.assignDecodedValue(e, elem) {
			return false
		}
		out.SetMapIndex(reflect.ValueOf(key).Convert(target.Type().Key()), elem)
	}
	target.Set(out)
	return true
}

func (s *Schema) assignList(v any, target reflect.Value) bool {
	list, ok := v.([]any)
	if !ok {
		return false
	}
	out := reflect.MakeSlice(target.Type(), len(list), len(list))
	for i, e := range list {
		if !s.Elem.assignDecodedValue(e, out.Index(i)) {
			return false
		}
	}
	target.Set(out)
	return true
}

func assignScalar(v any, target reflect.Value) bool {
	switch target.Kind() {
	case reflect.String:
		text, ok := v.(string)
		if !ok || !utf8.ValidString(text) {
			return false
		}
		target.SetString(text)
		return true
	case reflect.Bool:
		b, ok := v.(bool)
		target.SetBool(b)
		return ok
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, ok := v.(int64)
		if !ok || target.OverflowInt(n) {
			return false
		}
		target.SetInt(n)
		return true
	default:
		return false
	}
}

var quantityType = reflect.TypeFor[resource.Quantity]()

// assignByItself has a type read its own JSON, such as a quantity.
func assignByItself(v any, target reflect.Value) bool {
	reader, ok := target.Addr().Interface().(json.Unmarshaler)
	if !ok {
		return false
	}
	if text, ok := v.(string); ok && target.Type() == quantityType && !quantity.IsBounded(text) {
		return false
	}
	text, err := json.Marshal(v)
	return err == nil && reader.UnmarshalJSON(text) == nil
}
