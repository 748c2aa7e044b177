// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"strconv"
	"strings"
)

// fieldPath reads a path as workload.FieldString writes it: spec.containers[0], metadata.annotations["a.b/c"].
func fieldPath(s string) []any {
	var at []any
	for s != "" {
		switch {
		case s[0] == '.':
			s = s[1:]
		case strings.HasPrefix(s, `["`):
			quoted, err := strconv.QuotedPrefix(s[1:])
			if err != nil {
				return at
			}
			key, _ := strconv.Unquote(quoted)
			at, s = append(at, key), strings.TrimPrefix(s[1+len(quoted):], "]")
		case s[0] == '[':
			number, rest, _ := strings.Cut(s[1:], "]")
			i, err := strconv.Atoi(number)
			if err != nil {
				return at
			}
			at, s = append(at, i), rest
		default:
			end := strings.IndexAny(s, ".[")
			if end < 0 {
				end = len(s)
			}
			at, s = append(at, s[:end]), s[end:]
		}
	}
	return at
}

// joinField puts two paths together; either may be empty.
func joinField(a, b string) string {
	if a == "" || b == "" || strings.HasPrefix(b, "[") {
		return a + b
	}
	return a + "." + b
}
