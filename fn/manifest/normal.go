// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"

	kjson "sigs.k8s.io/json"
)

// normalValue converts a value to the types that Decode returns: whole numbers are int64 whatever their Go type.
// Values of other types go through JSON; one that JSON cannot express is a bug in the program and panics.
func normalValue(v any) any {
	switch v := v.(type) {
	case nil, string, bool, int64:
		return v
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case float64:
		if n, ok := jsonNumber(v); ok {
			return n
		}
		return v
	case map[string]any:
		return normalMap(v)
	case []any:
		return normalList(v)
	}
	js, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("manifest: %T is no value of a manifest: %v", v, err))
	}
	var out any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(js, &out); err != nil {
		panic(fmt.Sprintf("manifest: %T is no value of a manifest: %v", v, err))
	}
	return out
}

// normalMap copies only what it has to change.
func normalMap(m map[string]any) any {
	if m == nil {
		return nil
	}
	var out map[string]any
	for k, e := range m {
		n := normalValue(e)
		if isNormal(e, n) {
			continue
		}
		if out == nil {
			out = copyMap(m)
		}
		out[k] = n
	}
	if out == nil {
		return m
	}
	return out
}

func normalList(l []any) any {
	if l == nil {
		return nil
	}
	var out []any
	for i, e := range l {
		n := normalValue(e)
		if out == nil && !isNormal(e, n) {
			out = append(make([]any, 0, len(l)), l[:i]...)
		}
		if out != nil {
			out = append(out, n)
		}
	}
	if out == nil {
		return l
	}
	return out
}

// isNormal reports whether normalValue changed no value.
func isNormal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && a != nil && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	case []any:
		b, ok := b.([]any)
		return ok && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	case nil, string, bool, int64:
		return true
	case float64:
		b, ok := b.(float64)
		return ok && a == b
	}
	return false
}

// equalValues compares two values of the types that Decode returns.
func equalValues(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, there := b[k]
			if !there || !equalValues(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equalValues(a[i], b[i]) {
				return false
			}
		}
		return true
	case float64:
		b, ok := b.(float64)
		return ok && (a == b || math.IsNaN(a) && math.IsNaN(b))
	case goneValue:
		return false
	}
	switch b.(type) {
	case map[string]any, []any, goneValue:
		return false
	}
	return a == b
}

// goneValue is the value of an anchor that is no longer in the text: no value equals it.
type goneValue struct{}
