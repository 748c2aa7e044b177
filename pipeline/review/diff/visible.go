// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
)

// Visible writes out the characters of a line that a reader would not see, or that would end the line or turn it round, as <U+202E>.
func Visible(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if !strings.ContainsFunc(text, foreign.IsHidden) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if foreign.IsHidden(r) {
			fmt.Fprintf(&out, "<U+%04X>", r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}
