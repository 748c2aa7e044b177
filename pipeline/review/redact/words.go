// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import "bytes"

// The following functions scan every byte of all that is published, and are equivalent to one-line regular
// expressions, which their test contains. The regular expressions used an eighth of the daemon's time.

// kind is the kind of a Secret.
var kind = []byte("Secret")

// maySaySecret reports whether a text may declare an object as a Secret.
func maySaySecret(text []byte) bool { return bytes.Contains(text, kind) || mayEncode(text) }

// hasKind reports whether a text has a value that is exactly Secret: adjacent letters or digits would be part of
// the value. Most documents with these letters name something like imagePullSecrets, and need not be decoded.
func hasKind(text []byte) bool {
	for from := 0; ; {
		i := bytes.Index(text[from:], kind)
		if i < 0 {
			return false
		}
		at, end := from+i, from+i+len(kind)
		if (at == 0 || !isAlphanumeric(text[at-1])) && (end == len(text) || !isAlphanumeric(text[end])) {
			return true
		}
		from = end
	}
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// mayEncode reports whether a value may spell Secret in other letters than these: by character codes, across lines
// joined by a backslash, in base64 with the tag of binary data, which % can write otherwise, or in another encoding
// than UTF-8.
func mayEncode(text []byte) bool {
	return bytes.IndexByte(text, 0) >= 0 || bytes.Contains(text, []byte("binary")) ||
		bytes.HasPrefix(text, []byte("%TAG")) ||
		bytes.Contains(text, []byte("\n%TAG")) || hasEscape(text) || hasEncodedTag(text)
}

// hasEscape reports whether a backslash precedes a character code, or a character that cannot follow one in a
// double-quoted text except at the end of a line.
func hasEscape(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			return false
		}
		next := text[i+1]
		switch {
		case next == 'x', next == 'u', next == 'U', next < ' ', next > '~':
			return true
		}
		text = text[i+1:]
	}
}

// hasEncodedTag reports whether a word has a % somewhere after an exclamation mark.
func hasEncodedTag(text []byte) bool {
	if bytes.IndexByte(text, '!') < 0 || bytes.IndexByte(text, '%') < 0 {
		return false
	}
	tag := false
	for _, c := range text {
		switch c {
		case ' ', '\t', '\n', '\f', '\r':
			tag = false
		case '!':
			tag = true
		case '%':
			if tag {
				return true
			}
		}
	}
	return false
}
