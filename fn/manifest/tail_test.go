// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCommentsAtTheEndSurviveAddingAndRemoving checks that comments that end a mapping are still there once entries were
// written below them and taken out again.
func TestCommentsAtTheEndSurviveAddingAndRemoving(t *testing.T) {
	tests := map[string]string{
		"after the last container": "kind: Pod\nspec:\n  containers:\n  - name: a\n  # the last one\n",
		"after the last label":     "kind: Pod\nmetadata:\n  labels:\n    a: b\n    # no more\nspec: {}\n",
		"at both levels":           "kind: Pod\nmetadata:\n  labels:\n    a: b\n    # of the labels\n  # of the metadata\nspec:\n  # x\n  hostNetwork: false\n  # y\n\n# z\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			before, err := one(t, text).Object()
			if err != nil {
				t.Fatal(err)
			}
			after, err := one(t, text).Object()
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"metadata", "spec"} {
				m, _ := after[key].(map[string]any)
				if m == nil {
					continue
				}
				m["zeta"] = []any{map[string]any{"name": "new"}}
				m["eta"] = "new"
				if labels, ok := m["labels"].(map[string]any); ok {
					labels["new"] = "new"
				}
			}
			added, err := one(t, text).With(after)
			if err != nil {
				t.Fatal(err)
			}
			removed, err := one(t, string(added.Raw())).With(before)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text, string(removed.Raw())); diff != "" {
				t.Errorf("from\n%s%s", added.Raw(), diff)
			}
		})
	}
}

// TestWhatFollowsIsNoPartOfABlockScalar checks that what stands below a value, blanks in an empty line or a comment further to the
// right, does not become part of a text of several lines that is written there.
func TestWhatFollowsIsNoPartOfABlockScalar(t *testing.T) {
	lines := "---\nx: y\n---\n"
	nested := []any{map[string]any{"name": "web", "image": lines}}
	tests := map[string]struct{ text, want string }{
		"blanks below":              {"a:\n       \n #0\n", "a:\n- name: web\n  image: |\n    ---\n    x: y\n    ---\n\n #0\n"},
		"blanks at the end":         {"a:\n       \n", "a:\n- name: web\n  image: |\n    ---\n    x: y\n    ---\n\n"},
		"a comment further right":   {"a:\n       #0\n", "a:\n- name: web\n  image: \"---\\nx: y\\n---\\n\"\n       #0\n"},
		"both":                      {"a:\n       \n       #0\nb: c\n", "a:\n- name: web\n  image: \"---\\nx: y\\n---\\n\"\n       \n       #0\nb: c\n"},
		"an entry is taken out too": {"a:\nc: d\n       \n       #0\nb: c\n", "a:\n- name: web\n  image: \"---\\nx: y\\n---\\n\"\n       \n       #0\nb: c\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := one(t, tc.text)
			want, err := d.Object()
			if err != nil {
				t.Fatal(err)
			}
			want["a"] = nested
			delete(want, "c")
			got, err := d.With(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got.Raw())); diff != "" {
				t.Errorf("%s", diff)
			}
		})
	}
}

// TestWhatIsTakenOutLeavesNoLinesToABlockScalar takes an entry out below a text that keeps the empty lines at its end: those below the
// entry are not part of that text.
func TestWhatIsTakenOutLeavesNoLinesToABlockScalar(t *testing.T) {
	for text, want := range map[string]string{
		"a: |+\nc:\n\n":                "a: |+\n",
		"a: |+\nc: d\n\n  \n":          "a: |+\n",
		"a: |+\nc: d\n\n\nb: e\n":      "a: |+\nb: e\n",
		"a: |+\n  x\n\nc: d\n\nb: e\n": "a: |+\n  x\n\nb: e\n",
		"a: |\n  x\nc: d\n\nb: e\n":    "a: |\n  x\n\nb: e\n",
	} {
		d := one(t, text)
		value, err := d.Object()
		if err != nil {
			t.Fatal(err)
		}
		delete(value, "c")
		got, err := d.With(value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got.Raw())); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}
