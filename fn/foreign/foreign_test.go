// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package foreign_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prerig/prerig/fn/foreign"
)

func TestTextOfOthersIsCutAndVisible(t *testing.T) {
	for in, want := range map[string]string{
		"usual text": "usual text", "two\nlines\r\n\tend": "two lines   end", "a\x1b[2Jb": "a<U+001B>[2Jb", "a\u202eb\u200bc": "a<U+202E>b<U+200B>c", "\xff": "\ufffd",
		"a\u2028b": "a<U+2028>b", "äöü": "äöü",
	} {
		if got := foreign.Text(in, 100); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for _, in := range []string{strings.Repeat("x", 1<<20), strings.Repeat("ä", 1<<20), strings.Repeat("\u202e", 1<<20), strings.Repeat("\n", 1<<20), strings.Repeat("\xff", 1<<20)} {
		got := foreign.Text(in, 101)
		if len(got) > 101+12 || !strings.HasSuffix(got, "…") || !utf8.ValidString(got) || strings.ContainsFunc(got, foreign.IsHidden) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
		if quoted := foreign.Quote(in); len(quoted) > 1000 || strings.ContainsFunc(quoted, foreign.IsHidden) || !strings.HasSuffix(quoted, "more bytes") {
			t.Errorf("%d bytes: %s", len(quoted), quoted)
		}
	}
	if got := foreign.Quote("a"); got != `"a"` {
		t.Errorf("got %s", got)
	}
}

func TestLinesOfAuthorsDoNothing(t *testing.T) {
	for text, want := range map[string]string{
		"Ada Lovelace": "Ada Lovelace", " two\nlines\t": "two lines", "a\u202eb\u2066c": "abc", "\x1b[31mred": "?[31mred", "": "",
		"twelve bytes": "twelve bytes", "thirteen bytes": "thirteen ...", "eight byteä": "eight byteä", "\xff": "?",
		"\U0001F469\u200d\U0001F680": "\U0001F469\u200d\U0001F680",
	} {
		if got := foreign.Line(text, 12); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestListsNameTheFirst(t *testing.T) {
	for most, want := range map[int]string{1: "a and 2 more", 2: "a, b<U+202E> and 1 more", 3: "a, b<U+202E>, cccc…"} {
		if got := foreign.Names([]string{"a", "b\u202e", "ccccc"}, most, 4); got != want {
			t.Errorf("%d: got %q, want %q", most, got, want)
		}
	}
}
