// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHasDistinctKeys: lines alone show that usual objects repeat no key, and never that one with a repeated key repeats none.
func TestHasDistinctKeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"a: 1\nb:\n  a: 1\nc:\n- a: 1\n  b: 2\n- a: 1\n":               true,
		"# x\n---\na: |\n  b: 1\n  b: 1\nc: \"d\"\ne: [f, g]\nh: {}\n": true,
		"a:\n  - b\n  - c: 'd'\n    e: f: \n":                          false,
		"l:\n- - a: 1\n":                                               false,
		"a: 1\nb: 2\na: 3\n":                                           false,
		"a:\n  b: 1\n  c: 2\n  b: 3\n":                                 false,
		"l:\n- a: 1\n  b: 2\n  a: 3\n":                                 false,
		"l:\n  - a: |\n      x\n    a: y\n":                            false,
		"a: {b: 1, b: 2}\n":                                            false,
		"\"a\": 1\na: 2\n":                                             false,
		"a: &x {b: 1}\nc: {<<: *x, b: 2}\n":                            false,
		"a: \"b\n  c\"\na: 1\n":                                        false,
		"a: [b, {c: 1, c: 2}]\n":                                       false,
		"a: b\n  c\na: 1\n":                                            false,
		strings.Repeat("a", 10) + ":\tb\nx: 1\n":                       false,
	} {
		if got := hasDistinctKeys(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// FuzzDistinctKeys: a document whose lines show that it repeats no key has none that a parser finds.
func FuzzDistinctKeys(f *testing.F) {
	f.Add("a: 1\nb:\n  - a: |\n      x\n    b: 1\n  - a: 2\nc: d\n")
	f.Add("a:\n- b: 1\n- b: 1\n  c:\n  - d\n  e: 1\nb: 1\n")
	f.Add("true: 1\n0: 2\nTrue: 3\n00: 4\n")
	f.Add("a: >-\n  b\n\n  b: 1\nb: 'x'\n---\n")
	cases, _ := filepath.Glob("testdata/with/*/input.yaml")
	for _, name := range cases {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("a.yaml", []byte(text))
		if err != nil {
			return
		}
		for _, d := range file.Docs {
			if !hasDistinctKeys(d.text) {
				continue
			}
			if _, repeated := parseLastKeys(d); len(repeated) > 0 {
				t.Errorf("%q repeats %v", d.text, repeated)
			}
		}
	})
}
