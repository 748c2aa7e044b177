// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import "strings"

// WithoutHints returns a reason without what a pipeline could do about it: the build of a review has no pipeline. In messages, that
// follows on a semicolon.
func WithoutHints(text string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		for i := strings.Index(line, "; "); i >= 0; {
			if rest := line[i:]; strings.Contains(rest, "spec.build.") || strings.Contains(rest, "add it to spec.sources") {
				line = line[:i]
				break
			}
			next := strings.Index(line[i+1:], "; ")
			if next < 0 {
				break
			}
			i += 1 + next
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
