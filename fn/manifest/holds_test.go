// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// holds says yes only to the value that decoding gives, and for plain text says yes to that one.
func TestHolds(t *testing.T) {
	for _, c := range []struct {
		name, text string
		certain    bool
	}{
		{"plain", "a: 1\nb: [x, 1.5, true, ~]\nc:\n- d: e\n", true},
		{"quoted", "\"a\": '1'\nb: \"\\u00e9\"\n", true},
		{"block scalars", "a: |\n  b\n  c\nd: >-\n  e\n  f\n", true},
		{"empty", "a: {}\nb: []\nc:\n", true},
		{"numbers as keys", "1: a\ntrue: b\n", true},
		{"JSON", `{"a": [1, {"b": null}]}`, true},
		{"anchor", "a: &x 1\n", true},
		{"alias", "a: &x 1\nb: *x\n", false},
		{"merge key", "a: &x {b: 1}\nc:\n  <<: *x\n", false},
		{"tag", "a: !!str 1\n", false},
		{"tagged key", "!!str 1: a\n", false},
		{"big number", "a: 18446744073709551615\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkHolds(t, newDocument("", 0, 0, c.text), c.certain)
		})
	}
}

func TestHoldsNotTwice(t *testing.T) {
	d := newDocument("", 0, 0, "a: 1\na: 1\n")
	for _, want := range []any{map[string]any{"a": int64(1)}, map[string]any{"a": int64(1), "b": int64(1)}} {
		if d.decodesToValue(want) {
			t.Errorf("a key that is there twice was taken for %v", want)
		}
	}
}

func TestHoldsExpectedTexts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "with", "*", "expected.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no texts: %v", err)
	}
	certain := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d := newDocument("", 0, 0, string(text))
		if v, err := d.decodeAny(); err == nil && d.decodesToValue(v) {
			certain++
			checkHolds(t, d, true)
		}
	}
	if certain < len(files)/2 {
		t.Errorf("only %d of %d texts were compared without decoding", certain, len(files))
	}
}

// checkHolds compares a document with its value, and with that value changed at every place.
func checkHolds(t *testing.T, d *Document, certain bool) {
	t.Helper()
	v, err := d.decodeAny()
	if err != nil {
		t.Fatal(err)
	}
	if got := d.decodesToValue(v); got != certain {
		t.Errorf("holds(%v) is %t, want %t, in\n%s", v, got, certain, d.text)
	}
	for _, other := range changedValues(v) {
		if d.decodesToValue(other) {
			t.Errorf("%v was taken for %v in\n%s", other, v, d.text)
		}
	}
}

// changedValues returns values that each differ from v in one place.
func changedValues(v any) []any {
	out := []any{"another " + fmt.Sprint(v)}
	switch v := v.(type) {
	case map[string]any:
		more := copyMap(v)
		more["another"] = nil
		out = append(out, more)
		for key, e := range v {
			less := copyMap(v)
			delete(less, key)
			renamed := copyMap(less)
			renamed["another"] = e
			out = append(out, less, renamed)
			for _, c := range changedValues(e) {
				changed := copyMap(v)
				changed[key] = c
				out = append(out, changed)
			}
		}
	case []any:
		out = append(out, append(append([]any{}, v...), nil))
		for i, e := range v {
			out = append(out, append(append([]any{}, v[:i]...), v[i+1:]...))
			for _, c := range changedValues(e) {
				changed := append([]any{}, v...)
				changed[i] = c
				out = append(out, changed)
			}
		}
	}
	return out
}
