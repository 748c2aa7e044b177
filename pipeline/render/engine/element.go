// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"reflect"

	"github.com/prerig/prerig/fn/manifest"
)

// standaloneDocument returns the text of a list element as a document of its own. In the list, its first line
// follows a dash and the others are indented. The text is moved to the left, comments included; if that changes its
// meaning, because it has an alias of another element, it is re-encoded.
func standaloneDocument(object map[string]any, text []byte) []byte {
	moved := toTheLeft(text)
	if again, err := manifest.Decode(moved); err == nil && reflect.DeepEqual(again, any(object)) {
		return moved
	}
	return manifest.Marshal(object)
}

// toTheLeft removes the smallest common indentation from all lines but the first.
func toTheLeft(text []byte) []byte {
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	lines := bytes.SplitAfter(rest, []byte("\n"))
	least := -1
	for _, line := range lines {
		content := bytes.TrimLeft(line, " ")
		if len(bytes.TrimSpace(content)) == 0 || content[0] == '#' {
			continue
		}
		if indent := len(line) - len(content); least < 0 || indent < least {
			least = indent
		}
	}
	out := append(bytes.Clone(bytes.TrimLeft(first, " ")), '\n')
	for _, line := range lines {
		content := bytes.TrimLeft(line, " ")
		out = append(out, line[min(max(least, 0), len(line)-len(content)):]...)
	}
	return out
}
