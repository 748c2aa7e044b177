// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
)

// maxLine is how many bytes of one line a status keeps.
const maxLine = 2000

// OneLine returns a message on one line that is not too long for a status. Servers, and authors of sources, may have written parts of it:
// characters that cannot be seen are written out.
func OneLine(text string) string {
	if most := 4 * maxLine; len(text) > most {
		text = text[:most]
	}
	return foreign.Text(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " "), maxLine)
}

// Count returns a number with what it counts, as in "1 file" and "2 files".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
