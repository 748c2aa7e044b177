// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package foreign makes text of others fit to be quoted in an error, a status, a log or on a page: values of annotations, and what servers
// answer. It is cut, is one line, and has no character that cannot be seen or that changes how the text around it reads.
package foreign

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxValue is how many bytes of a value are quoted.
const MaxValue = 120

// Quote returns a value in double quotes, at most [MaxValue] bytes of it, followed by its length if it is
// truncated.
func Quote(value string) string {
	if len(value) <= MaxValue {
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprintf("%q and %d more bytes", strings.ToValidUTF8(value[:MaxValue], ""), len(value)-MaxValue)
}

// Head returns the whole characters in the first bytes of a text, or the text where it has no more bytes.
func Head(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = text[:most]
	for range utf8.UTFMax - 1 { // the begin of a character
		if r, n := utf8.DecodeLastRuneInString(text); r == utf8.RuneError && n == 1 {
			text = text[:len(text)-1]
		}
	}
	return text
}

// Text returns at most so many bytes of a text on one line. Line breaks and tabs become blanks, characters that cannot be seen are written
// out, such as <U+202E>.
func Text(text string, most int) string {
	cut := len(text) > most
	text = Head(text, most)
	text = strings.ToValidUTF8(text, "\ufffd")
	if !cut && strings.IndexFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' || IsHidden(r) }) < 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if out.Len() >= most {
			cut = true
			break
		}
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			out.WriteByte(' ')
		case IsHidden(r):
			fmt.Fprintf(&out, "<U+%04X>", r)
		default:
			out.WriteRune(r)
		}
	}
	if cut {
		out.WriteString("…")
	}
	return out.String()
}

// IsHidden reports whether a character cannot be seen, or changes how others are shown. A tab is not hidden.
func IsHidden(r rune) bool {
	return r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}
