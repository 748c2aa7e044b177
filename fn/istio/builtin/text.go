// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/release"
)

// forRelease returns the policy for a version. Lines of the policy mark what only some releases have; they are comments of a
// template or of the values. What lies between "since 1.29" and "end" is left out for older releases, and what is
// inside of a comment "before 1.29" is lines of the policy for them.
func forRelease(text []byte, v istio.Version) []byte {
	of := v.Release()
	out := bytes.NewBuffer(make([]byte, 0, len(text)))
	inside, wanted := false, true
	for line := range bytes.Lines(text) {
		word, points := markIn(line)
		switch {
		case word == "end" && inside:
			inside, wanted = false, true
		case word != "" && word != "end":
			inside, wanted = true, wants(word, points, of)
		case wanted:
			out.Write(line)
		}
	}
	written := bytes.Replace(out.Bytes(), fmt.Appendf(nil, "\n    version: %q\n", fmt.Sprintf("1.%d", DefaultMinor)), fmt.Appendf(nil, "\n    version: %q\n", v), 1)
	return bytes.Replace(written, fmt.Appendf(nil, " tag: %s\n", release.Newest(DefaultMinor)), fmt.Appendf(nil, " tag: %s\n", of), 1)
}

// markIn returns the word of a line that is a mark, and the releases that it names. The end of a comment is an "end".
func markIn(line []byte) (word, points string) {
	text := strings.TrimSpace(string(line))
	if text == "*/}}" {
		return "end", ""
	}
	comment, ok := strings.CutPrefix(text, "{{- /* ")
	if !ok {
		if comment, ok = strings.CutPrefix(text, "# "); !ok {
			return "", ""
		}
	}
	comment = strings.TrimSuffix(comment, " */}}")
	word, points, _ = strings.Cut(comment, " ")
	switch {
	case comment == "end":
		return word, ""
	case (word == "since" || word == "before") && strings.HasPrefix(points, "1."):
		return word, points
	}
	return "", ""
}

// wants reports whether a release has the part behind a mark.
func wants(word, points string, of release.Release) bool {
	return release.Since(strings.Split(points, ", ")...).Contains(of) == (word == "since")
}
