// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"maps"
	"reflect"
	"slices"
)

// Maps returns the mappings of a list, each at its index in the list; nil in the place of what is none.
func Maps(list any) []map[string]any {
	items, _ := list.([]any)
	out := make([]map[string]any, len(items))
	for i, item := range items {
		out[i], _ = item.(map[string]any)
	}
	return out
}

// MapAt returns the mapping at a path of fields, or nil if none exists.
func MapAt(m map[string]any, path ...string) map[string]any {
	for _, key := range path {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// ValueAt returns the value at a path of fields, or nil if none exists.
func ValueAt(m map[string]any, path ...string) any {
	var value any = m
	for _, key := range path {
		fields, _ := value.(map[string]any)
		value = fields[key]
	}
	return value
}

// TextAt returns the text at a path of fields, or "" if none exists.
func TextAt(m map[string]any, path ...string) string {
	text, _ := ValueAt(m, path...).(string)
	return text
}

// Find returns the first element of a list that has a name, or nil.
func Find(list []any, name string) map[string]any {
	for _, e := range list {
		if m, ok := e.(map[string]any); ok && m["name"] == name {
			return m
		}
	}
	return nil
}

// Names returns the names of a list's elements; an element without one has "".
func Names(list []any) []string {
	var out []string
	for _, e := range list {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		out = append(out, name)
	}
	return out
}

// Without returns a copy of a list without the elements that have a name.
func Without(list []any, name string) []any {
	out := make([]any, 0, len(list))
	for _, e := range list {
		if m, ok := e.(map[string]any); !ok || m["name"] != name {
			out = append(out, e)
		}
	}
	return out
}

// WithoutNames returns a copy of a list without the elements that have one of the names.
func WithoutNames(list []any, gone []string) []any {
	return slices.DeleteFunc(slices.Clone(list), func(e any) bool {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		return slices.Contains(gone, name)
	})
}

// StringMap returns a map of strings, such as labels; a value that is no string, such as null, is "".
func StringMap(v any) map[string]string {
	m, _ := v.(map[string]any)
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, e := range m {
		out[k], _ = e.(string)
	}
	return out
}

// CopyMap returns a deep copy of a map; nil stays nil.
func CopyMap(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = CopyValue(v)
	}
	return out
}

// CopyValue returns a deep copy of a decoded value.
func CopyValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return CopyMap(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = CopyValue(e)
		}
		return out
	default:
		return v
	}
}

// SortedKeys returns the keys of a map in their order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Same reports whether two decoded values are the same.
func Same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		m, ok := b.(map[string]any)
		if !ok || len(a) != len(m) {
			return false
		}
		for k, v := range a {
			if other, ok := m[k]; !ok || !Same(v, other) {
				return false
			}
		}
		return true
	case []any:
		l, ok := b.([]any)
		if !ok || len(a) != len(l) {
			return false
		}
		for i := range a {
			if !Same(a[i], l[i]) {
				return false
			}
		}
		return true
	default:
		switch b.(type) {
		case map[string]any, []any:
			return false
		}
		return a == b
	}
}

// Equal is reflect.DeepEqual for decoded values, which it compares in a fraction of the time. It distinguishes nil
// from empty.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && equalMaps(a, b)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		if len(a) == 0 || &a[0] == &b[0] {
			return true
		}
		for i := range a {
			if !Equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case string:
		b, ok := b.(string)
		return ok && a == b
	case nil, bool, int64, float64:
		switch b.(type) {
		case nil, bool, int64, float64:
			return a == b
		}
		return false
	default:
		return reflect.DeepEqual(a, b)
	}
}

func equalMaps(a, b map[string]any) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	if reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() {
		return true
	}
	for k, v := range a {
		if other, ok := b[k]; !ok || !Equal(v, other) {
			return false
		}
	}
	return true
}

// PodPart returns a copy of the part of a pod that injection changes: metadata and spec.
func PodPart(obj map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range []string{"metadata", "spec"} {
		if m, ok := obj[key].(map[string]any); ok {
			out[key] = CopyMap(m)
		}
	}
	return out
}
