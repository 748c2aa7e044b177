// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

// TestNotesStayInTheirBlock: a name of a file or a message of the author of a repository does not end the block that notes are shown in.
func TestNotesStayInTheirBlock(t *testing.T) {
	for _, n := range []int{3, 4, 5, 8, 12} {
		row := strings.Repeat("`", n)
		var out strings.Builder
		printNotes(&out, "warning: a.yaml\n"+row+"\n@team **please merge**\n")
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		fence := strings.TrimSuffix(lines[0], "text")
		if last := lines[len(lines)-1]; len(fence) <= n && n >= 3 || last != fence || strings.Count(out.String(), fence) != 2 {
			t.Errorf("%d backticks:\n%s", n, out.String())
		}
	}
}
