// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/prerig/prerig/fn/result"
)

// escapeControlCharacters returns a text without anything that a terminal would obey instead of showing it: escape
// sequences in the name of a file or an object, and what turns the direction of writing around. They are written as Go
// writes them.
func escapeControlCharacters(text string) string {
	if !strings.ContainsFunc(text, isControl) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !isControl(r):
			b.WriteString(text[i : i+n])
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

// isControl reports whether a terminal does not show a character.
func isControl(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r))
}

// visibleWriter writes text for people, so that all of it can be seen.
type visibleWriter struct{ to io.Writer }

func (w visibleWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.to, escapeControlCharacters(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// visibleResults returns results whose text can all be seen.
func visibleResults(rs result.Results) result.Results {
	out := slices.Clone(rs)
	for i, r := range out {
		out[i].Message = escapeControlCharacters(r.Message)
		if r.File != nil {
			file := *r.File
			file.Path = escapeControlCharacters(file.Path)
			out[i].File = &file
		}
		if r.ResourceRef != nil {
			ref := *r.ResourceRef
			ref.Name, ref.Namespace = escapeControlCharacters(ref.Name), escapeControlCharacters(ref.Namespace)
			out[i].ResourceRef = &ref
		}
	}
	return out
}
