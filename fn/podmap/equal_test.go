// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"math"
	"reflect"
	"testing"
)

// Equal must tell apart what reflect.DeepEqual tells apart, as a pod that counts as unchanged is not written.
func TestEqualIsDeepEqual(t *testing.T) {
	var noMap map[string]any
	var noList []any
	shared := map[string]any{"a": math.NaN()}
	values := []any{
		nil, true, false, int64(1), int64(0), 1, float64(1), math.NaN(), uint64(1), "", "a", "1", noMap, noList, map[string]any{}, []any{},
		shared, map[string]any{"a": math.NaN()}, map[string]any{"a": nil}, map[string]any{"b": nil}, map[string]any{"a": int64(1)},
		map[string]any{"a": float64(1)}, []any{nil}, []any{map[string]any{}}, []any{noMap}, []any{[]any{"a"}}, []any{[]any{"a"}, "b"},
		map[string]string{"a": "b"}, map[string]string{"a": "b"}, []string{"a"}, []string{"a"}, map[string]any{"a": []any{shared}},
		map[string]any{"a": []any{shared}, "b": map[string]any{"c": "d"}}, map[string]any{"a": []any{shared}, "b": map[string]any{"c": "e"}},
	}
	for _, a := range values {
		for _, b := range values {
			if got, want := Equal(a, b), reflect.DeepEqual(a, b); got != want {
				t.Errorf("Equal(%#v, %#v) is %t, want %t", a, b, got, want)
			}
		}
		if c := CopyValue(a); Equal(a, c) != reflect.DeepEqual(a, c) {
			t.Errorf("a copy of %#v is not compared as reflect does", a)
		}
	}
}
