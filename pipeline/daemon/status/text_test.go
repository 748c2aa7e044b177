// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMessagesFitIntoAStatus(t *testing.T) {
	for name, test := range map[string]struct{ err, want string }{
		"short":         {"a b", "a b"},
		"several lines": {"first\nsecond\r\n\n third\n", "first second  third"},
		"long":          {strings.Repeat("x", 3000), strings.Repeat("x", 2000) + "…"},
		"cut in a rune": {"x" + strings.Repeat("é", 3000), "x" + strings.Repeat("é", 999) + "…"},
	} {
		if got := OneLine(test.err); got != test.want || !utf8.ValidString(got) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
