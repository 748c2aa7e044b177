// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"math"
	"reflect"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestStoredCopyIsThatOfJSON compares the copy with the one that writing and reading JSON makes.
func TestStoredCopyIsThatOfJSON(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"text": "a <b> & \u2028", "invalid text": "a\xffb", "integer": int64(5), "int": 5, "whole": 5.0, "negative zero": math.Copysign(0, -1),
		"fraction": 0.1, "large": 1e20, "huge": 1e300, "beyond integers": float64(1 << 62), "nothing": nil, "true": true,
		"list": []any{1.0, "a", nil, []any{}}, "no list": []any(nil), "no map": map[string]any(nil), "invalid key": map[string]any{"\xff": 1.0},
		"map": map[string]any{"a": map[string]any{}, "b": []any{map[string]any{"c": 2.5}}}, "typed": map[string]string{"a": "b"},
	} {
		object := map[string]any{"v": v}
		text, err := utiljson.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		if err := utiljson.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		got, err := storedCopy(object)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v (%v), want %#v", name, got, err, want)
		}
	}
	inner := map[string]any{"a": "b"}
	copied, err := storedCopy(map[string]any{"inner": inner})
	if err != nil {
		t.Fatal(err)
	}
	copied["inner"].(map[string]any)["a"] = "c"
	if inner["a"] != "b" {
		t.Error("the copy shares a map with the object")
	}
}
