// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strconv"
	"strings"
)

// ParseField reads what FieldString writes. For a malformed path it returns the part before the fault.
func ParseField(s string) []any {
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
			key, err := strconv.Unquote(quoted)
			rest, ok := strings.CutPrefix(s[1+len(quoted):], "]")
			if err != nil || !ok {
				return at
			}
			at, s = append(at, key), rest
		case s[0] == '[':
			number, rest, ok := strings.Cut(s[1:], "]")
			if !ok {
				return at
			}
			s = rest
			if i, err := strconv.Atoi(number); err == nil {
				at = append(at, i)
			} else {
				at = append(at, number) // a key without quotes, as Kubernetes prints them
			}
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

// ValueAt returns the value at a path as ParseField reads it, or nil.
func ValueAt(v any, path []any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if step < 0 || step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}
