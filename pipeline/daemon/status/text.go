// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"time"

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

// ShortDuration is a duration with two or three digits.
func ShortDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
