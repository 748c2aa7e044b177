// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package foreign makes text of others fit to be quoted in an error, a status, a log or on a page: values of annotations, and what servers
// answer. It is cut, is one line, and has no character that cannot be seen or that changes how the text around it reads.
package foreign

import (
	"fmt"
	"slices"
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

// Visible writes out the characters of a line that a reader would not see, or that would end the line or turn it round, as <U+202E>.
func Visible(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if !strings.ContainsFunc(text, IsHidden) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if IsHidden(r) {
			fmt.Fprintf(&out, "<U+%04X>", r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

// zeroWidthJoiner holds the parts of an emoji together.
const zeroWidthJoiner = '\u200d'

// Line returns a text of an author as one line of at most so many bytes, without the characters that do something to a terminal or a
// page.
func Line(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r):
			return '?'
		case unicode.Is(unicode.Cf, r) && r != zeroWidthJoiner:
			return -1 // such as those that turn the direction of what follows
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = Head(text, most-3) + "..."
	}
	return text
}

// List joins the first of some texts, and counts the others.
func List(texts []string, most int) string {
	if len(texts) <= most {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], ", "), len(texts)-most)
}

// Names is List for names that others have chosen, of each of which at most so many bytes are shown.
func Names(names []string, most, length int) string {
	shown := slices.Clone(names)
	for i := range shown[:min(most, len(shown))] {
		shown[i] = Text(shown[i], length)
	}
	return List(shown, most)
}
