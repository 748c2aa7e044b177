// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"strings"

	"github.com/prerig/prerig/fn/manifest"
)

// maxName bounds names in slots: templates cut names at 63 bytes, and put them together.
const maxName = 40

// Each class has values that are read, written and printed alike: a value of a class can take the place of another. The class is a part of
// the key. 0 is none.
const (
	dnsClass     = 'n' // begins with a lower-case letter, has lower-case letters, digits and single hyphens inside
	labelClass   = 'l' // the same with capitals, dots and underscores
	versionClass = 'v' // three numbers with dots, with or without more behind a hyphen
	copyClass    = 'c' // text on one line that is written as it is
	numberClass  = '#' // an integer from 1 on
)

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// nameClass returns the class of a name.
func nameClass(s string) byte {
	n := len(s)
	if n < 2 || n > maxName {
		return 0
	}
	if isDigit(s[0]) {
		if isVersion(s) {
			return versionClass
		}
		return 0
	}
	if last := s[n-1]; !isLower(last) && !isDigit(last) && !isUpper(last) {
		return 0
	}
	class := byte(dnsClass)
	for i := range n {
		c := s[i]
		switch {
		case isLower(c), isDigit(c):
		case c == '-' && s[i-min(i, 1)] != '-' && i > 0:
		case isUpper(c), (c == '.' || c == '_') && i > 0:
			class = labelClass
		default:
			return 0
		}
	}
	if !manifest.PlainSafe(s) {
		return 0
	}
	return class
}

// isVersion reports whether a text is three numbers with dots, and perhaps a hyphen and letters, digits, dots and hyphens.
func isVersion(s string) bool {
	core, rest, more := strings.Cut(s, "-")
	dots := 0
	for i := range len(core) {
		c := core[i]
		switch {
		case c == '.' && i > 0 && core[i-1] != '.':
			dots++
		case !isDigit(c):
			return false
		}
	}
	if dots != 2 || core[len(core)-1] == '.' || more && rest == "" {
		return false
	}
	for i := range len(rest) {
		if c := rest[i]; !isLower(c) && !isDigit(c) && (c != '.' && c != '-' || i == len(rest)-1 || i == 0) {
			return false
		}
	}
	return manifest.PlainSafe(s)
}

// copyable reports whether a text in the style is read as a string, and written again in the same bytes wherever it is. The image auto is one
// that a template replaces.
func copyable(s string, quote byte) bool {
	if s == "" || s == "auto" || strings.Contains(s, "istio") || strings.Contains(s, "prerig") {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '\\' || c == '"' || c == '\'' {
			return false
		}
	}
	return quote != 0 || manifest.PlainSafe(s)
}

// numberEnd returns how long the integer is that a text begins with; 0 where it is none from 1 to 99999.
func numberEnd(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	if n > 5 || n > 0 && s[0] == '0' {
		return 0
	}
	return n
}

// isUnit reports whether a text is the unit of a quantity. Numbers without one are not slots: they are no strings.
func isUnit(s string) bool { return s == "m" || s == "Mi" || s == "Gi" || s == "Ki" }
