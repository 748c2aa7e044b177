// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import "reflect"

// cloneMessage returns a deep copy of a message.
func cloneMessage[T any](m *T) *T {
	if m == nil {
		return nil
	}
	return copyValue(reflect.ValueOf(m)).Interface().(*T)
}

func copyValue(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		fresh := reflect.New(v.Type().Elem())
		fresh.Elem().Set(v.Elem())
		if v.Elem().Kind() == reflect.Struct {
			for i := 0; i < v.Elem().NumField(); i++ {
				switch field := v.Elem().Field(i); field.Kind() {
				case reflect.Pointer, reflect.Slice, reflect.Map:
					fresh.Elem().Field(i).Set(copyValue(field))
				}
			}
		}
		return fresh
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := 0; i < v.Len(); i++ {
			fresh.Index(i).Set(copyValue(v.Index(i)))
		}
		return fresh
	case reflect.Map:
		if v.IsNil() || v.Type() == reflect.TypeFor[Struct]() {
			return v // a Struct is never changed
		}
		fresh := reflect.MakeMapWithSize(v.Type(), v.Len())
		for _, key := range v.MapKeys() {
			fresh.SetMapIndex(key, copyValue(v.MapIndex(key)))
		}
		return fresh
	default:
		return v
	}
}

// messageMerge merges messages as protobuf does: non-zero scalars replace, messages merge, lists append, maps merge
// by key. A wrapper is a message with one scalar, so one of false or zero leaves the existing value.
type messageMerge struct {
	// durations makes durations merge as the messages that they are, too: 0s leaves the existing value. Otherwise
	// they replace.
	durations bool
}

// mergeInto merges src over dst. It modifies dst but not src, and shares no memory with src.
func (m messageMerge) mergeInto(dst, src reflect.Value) {
	fields := fieldsOf(dst.Type())
	for _, f := range fields {
		from := src.Field(f.index)
		if from.IsZero() {
			continue
		}
		to := dst.Field(f.index)
		if f.oneof != "" && to.IsZero() {
			clearOneof(dst, fields, f.oneof)
		}
		switch {
		case from.Kind() == reflect.Slice:
			to.Set(reflect.AppendSlice(copyValue(to), copyValue(from)))
		case from.Kind() == reflect.Map && from.Type() != reflect.TypeFor[Struct]():
			mergeMapInto(to, from)
		case from.Kind() != reflect.Pointer || from.Type().Elem().Kind() != reflect.Struct || to.IsNil():
			to.Set(copyValue(from))
		case isScalarMessage(from):
			to.Set(m.mergedScalars(to, from))
		default:
			m.mergeInto(to.Elem(), from.Elem())
		}
	}
}

// mergedScalars returns a wrapper or a duration with the fields of another that are not zero.
func (m messageMerge) mergedScalars(to, from reflect.Value) reflect.Value {
	if _, ok := from.Interface().(*Duration); ok && !m.durations {
		return copyValue(from)
	}
	out := copyValue(to)
	for i := range from.Elem().NumField() {
		if v := from.Elem().Field(i); !v.IsZero() {
			out.Elem().Field(i).Set(v)
		}
	}
	return out
}

func mergeMapInto(to, from reflect.Value) {
	if to.IsNil() {
		to.Set(reflect.MakeMapWithSize(to.Type(), from.Len()))
	}
	for _, key := range from.MapKeys() {
		to.SetMapIndex(key, copyValue(from.MapIndex(key)))
	}
}

// isScalarMessage reports whether v points to a message that is written as a scalar.
func isScalarMessage(v reflect.Value) bool {
	switch v.Interface().(type) {
	case *Duration, *BoolValue, *Int32Value, *UInt32Value, *Int64Value:
		return true
	}
	return false
}
