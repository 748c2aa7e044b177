// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"testing"
)

func TestComments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"": nil, "# a\n": {"# a"}, "#": {"#"}, "a: b # c\r\n# d\r\n": {"# c", "# d"},
		"# a\n---\n# b\nk: v\n# c\n...\n# d\n":                                           {"# a", "# b", "# c", "# d"},
		"k: | # a\n  # b\n\n  c # d\n # e\nl: >-\n  # f\n# g\n":                          {"# a", "# e", "# g"},
		"- |\n  # a\n- # b\n  'c # d\n\n  # e' # f\n- \"\\\" # g\" # h\n- i#j # k # l\n": {"# b", "# f", "# h", "# k # l"},
		"a: &xy b # c\nd: *xy # e\nf: # g\n- [h, # i\n 'j # k']\n":                       {"# c", "# e", "# g", "# i"},
	} {
		f, err := Parse("", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range f.Docs {
			comments, err := d.Comments()
			if err != nil {
				t.Errorf("%q: %v", text, err)
			}
			got = append(got, comments...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("comments of %q: %q, want %q", text, got, want)
		}
	}
}
