// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"testing"
)

// TestWithLastKeys: the last of several keys counts, everything else keeps its bytes.
func TestWithLastKeys(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want, found string }{
		"none":            {"a: 1 # one\nb: 2\n", "a: 1 # one\nb: 2\n", "[]"},
		"at the top":      {"a: 1\nb: 2 # two\na: 3\n", "b: 2 # two\na: 3\n", "[{a 3}]"},
		"three times":     {"a: 1\na: 2\na: 3\n", "a: 3\n", "[{a 3}]"},
		"with a block":    {"m:\n  labels:\n    app: a\n    other: b\n    app: c\nx: 1\n", "m:\n  labels:\n    other: b\n    app: c\nx: 1\n", "[{m.labels.app 5}]"},
		"a whole mapping": {"m:\n  a: {b: 1, b: 2}\nn: 1\nm:\n  c: 1\n", "n: 1\nm:\n  c: 1\n", "[{m 4}]"},
		"below a dash":    {"env:\n- name: a\n  name: b\n  value: c\n", "env:\n- name: b\n  value: c\n", "[{env[0].name 3}]"},
		"in one line":     {"a: {b: 1, \"b\": 2, c: 3}\n", "a: {\"b\": 2, c: 3}\n", "[{a.b 1}]"},
		"in JSON":         {"{\"a\": 1, \"a\": [1, 2]}", "{\"a\": [1, 2]}", "[{a 1}]"},
		"a long key":      {"l:\n  a.b/c: 1\n  a.b/c: 2\n", "l:\n  a.b/c: 2\n", "[{l[\"a.b/c\"] 3}]"},
		"an alias":        {"a: &x {b: 1}\na: 2\nc: *x\n", "a: 2\nc:\n  b: 1\n", "[{a 2}]"},
		"a merge key":     {"x: &x {a: 1}\nz:\n  <<: *x\n  a: 2\n  a: 3\n", "x: &x {a: 1}\nz:\n  <<: *x\n  a: 3\n", "[{z.a 5}]"},
		"a literal text":  {"a: |\n  b: 1\n  b: 2\nc: |\n  d\na: e\n", "c: |\n  d\na: e\n", "[{a 6}]"},
		"a document mark": {"---\na: 1\na: 2\n", "---\na: 2\n", "[{a 3}]"},
	} {
		file, err := Parse("f.yaml", []byte(tc.text))
		if err != nil {
			t.Fatal(err)
		}
		got, found := file.Docs[0].WithLastKeys()
		if got.Text() != tc.want || fmt.Sprint(found) != tc.found {
			t.Errorf("%s: got %q and %v, want %q and %s", name, got.Text(), found, tc.want, tc.found)
		}
		if (got == file.Docs[0]) != (tc.found == "[]") {
			t.Errorf("%s: the document is another one", name)
		}
	}
}
