// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// isAmbiguous reports whether an unquoted s is anything but a string to some reader of YAML 1.1 or 1.2.
func isAmbiguous(s string) bool {
	if s == "" || s == "<<" || s == "=" {
		return true
	}
	if len(s) <= longestWord {
		if _, ok := words[s]; ok {
			return true
		}
	}
	c := s[0]
	if !(c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.') {
		if len(s) <= longestWord {
			_, ok := words[strings.ToLower(s)]
			return ok
		}
		return false
	}
	if _, ok := resolveNonString(s); ok {
		return true
	}
	plain := strings.ReplaceAll(strings.ReplaceAll(s, "_", ""), ",", "")
	return floatText(plain) || isSexagesimal(plain) || looksLikeDate(s) || hasBasePrefix(plain)
}

// hasBasePrefix reports whether s looks like a number with a base, of any length: 0x1f, 0o17, 0b1.
func hasBasePrefix(s string) bool {
	s = strings.TrimLeft(s, "+-")
	if len(s) < 3 || s[0] != '0' || strings.IndexByte("xXoObB", s[1]) < 0 {
		return false
	}
	for _, c := range []byte(s[2:]) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return false
		}
	}
	return true
}

// isSexagesimal reports whether s is digits with colons, which YAML 1.1 reads as a number.
func isSexagesimal(s string) bool {
	s = strings.TrimLeft(s, "+-")
	if !strings.Contains(s, ":") {
		return false
	}
	for _, c := range []byte(s) {
		if !(c >= '0' && c <= '9' || c == ':' || c == '.') {
			return false
		}
	}
	return true
}

// looksLikeDate reports whether s starts as a date does, which YAML 1.1 reads as a timestamp.
func looksLikeDate(s string) bool {
	y := countDigits(s)
	if y != 4 || len(s) < 8 || s[4] != '-' {
		return false
	}
	m := countDigits(s[5:])
	return m >= 1 && m <= 2 && 5+m < len(s) && s[5+m] == '-' && countDigits(s[6+m:]) > 0
}

// plainSafe reports whether s can be written without quotes. Flow style allows fewer characters.
func plainSafe(s string, flow bool) bool {
	if isAmbiguous(s) || s[0] == ' ' || s[len(s)-1] == ' ' || s[len(s)-1] == ':' || isMarker(s) {
		return false
	}
	switch c := s[0]; c {
	case ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`', '?', ':':
		return false
	case '-':
		if len(s) == 1 || s[1] == ' ' || flow {
			return false
		}
	}
	if isPlainest(s) {
		return true
	}
	for i, r := range s {
		switch {
		case r < 0x20 || r >= 0x7f && r < 0xa0 || mustEscape(r):
			return false
		case r == ':' && s[i+1] == ' ', r == '#' && s[i-1] == ' ':
			return false
		case flow && (strings.ContainsRune(",[]{}?", r) || r == ':' && strings.IndexByte("\"'", s[i+1]) >= 0):
			return false
		}
	}
	return true
}

// isPlainest reports whether all characters are free of meaning anywhere in a text without quotes: most texts have
// only such characters.
func isPlainest(s string) bool {
	for i := range len(s) {
		if !plainest[s[i]] {
			return false
		}
	}
	return true
}

// plainest are letters, digits, and a few signs.
var plainest = func() (set [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") {
		set[c] = true
	}
	return set
}()

// mustEscape reports whether a character above ASCII is only written as an escape: line breaks of YAML 1.1, the byte order
// mark, and what is no character.
func mustEscape(r rune) bool {
	return r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == utf8.RuneError || r == 0xfffe || r == 0xffff ||
		r >= 0x7f && r < 0xa0
}

// doubleQuoted writes s in double quotes, which is JSON as well where s is text.
func doubleQuoted(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x20 || mustEscape(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func singleQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// oneLine reports whether s can be written in single quotes.
func oneLine(s string) bool {
	for _, r := range s {
		if r < 0x20 || mustEscape(r) {
			return false
		}
	}
	return true
}

// quoteString writes a string on one line; like is the style of the text that it replaces.
func quoteString(s string, flow bool, like nodeStyle) string {
	if !oneLine(s) {
		return doubleQuoted(s)
	}
	switch {
	case like == doubleStyle:
		return doubleQuoted(s)
	case like == singleStyle:
		return singleQuoted(s)
	case plainSafe(s, flow):
		return s
	case strings.ContainsAny(s, `"\`):
		return singleQuoted(s)
	}
	return doubleQuoted(s)
}

// scalarText writes a scalar on one line.
func scalarText(v any, flow bool, like nodeStyle) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return floatString(v)
	case string:
		return quoteString(v, flow, like)
	case map[string]any:
		return "{}"
	case []any:
		return "[]"
	}
	panic(fmt.Sprintf("manifest: no scalar: %T", v))
}

// floatString writes a float so that it is read as one again by YAML and by JSON.
func floatString(f float64) string {
	if _, ok := jsonNumber(f); !ok {
		switch {
		case f > 0:
			return ".inf"
		case f < 0:
			return "-.inf"
		}
		return ".nan"
	}
	format := byte('f')
	if a := max(f, -f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.FormatFloat(f, format, -1, 64)
}

// literalBlock returns a multi-line string as a block scalar: its header and its lines without indentation. ok is false where
// a block scalar cannot hold it.
func literalBlock(s string, step int) (header string, lines []string, ok bool) {
	body := strings.TrimRight(s, "\n")
	if body == "" || !strings.Contains(s, "\n") {
		return "", nil, false
	}
	for _, r := range s {
		if r < 0x20 && r != '\n' && r != '\t' || mustEscape(r) {
			return "", nil, false
		}
	}
	header = "|"
	lead := strings.TrimLeft(body, "\n")
	if lead[0] == ' ' || lead[0] == '\t' {
		header += strconv.Itoa(step)
	}
	n := len(s) - len(body)
	switch {
	case n == 0:
		header += "-"
	case n > 1:
		header += "+"
	}
	lines = strings.Split(body, "\n")
	for n := len(s) - len(body); n > 1; n-- {
		lines = append(lines, "")
	}
	return header, lines, true
}
