// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"bufio"
	"bytes"
	"testing"
)

func TestPutDocument(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ stream, doc, want string }{
		"first":                    {"", "a: 1\n", "a: 1\n"},
		"a start between":          {"a: 1\n", "b: 1\n", "a: 1\n---\nb: 1\n"},
		"a start is there":         {"a: 1\n", "---\nb: 1\n", "a: 1\n---\nb: 1\n"},
		"a start with content":     {"a: 1\n", "--- {b: 1}\n", "a: 1\n--- {b: 1}\n"},
		"dashes are no start":      {"a: 1\n", "---b: 1\n", "a: 1\n---\n---b: 1\n"},
		"no line end":              {"a: 1", "b: 1", "a: 1\n---\nb: 1"},
		"nothing is left out":      {"a: 1\n", " \n", "a: 1\n"},
		"a byte order mark":        {"a: 1\n", "\ufeffb: 1\n", "a: 1\n---\nb: 1\n"},
		"a directive":              {"a: 1\n", "%YAML 1.1\n---\nb: 1\n", "a: 1\n...\n%YAML 1.1\n---\nb: 1\n"},
		"CRLF keeps its line ends": {"a: 1\r\n", "---\r\nb: 1\r\n", "a: 1\r\n---\r\nb: 1\r\n"},
	} {
		var got bytes.Buffer
		out := &streamWriter{w: bufio.NewWriter(&got)}
		out.putString(tc.stream)
		out.putDocument([]byte(tc.doc))
		if err := out.w.Flush(); err != nil || got.String() != tc.want {
			t.Errorf("%s: got %q and %v, want %q", name, &got, err, tc.want)
		}
	}
}
