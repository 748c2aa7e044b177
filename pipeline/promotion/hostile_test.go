// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// TestNamesThatHostsReportAreQuotedInPart: the writer of a commit status chooses its name, which is in the message of
// the group.
func TestNamesThatHostsReportAreQuotedInPart(t *testing.T) {
	name := "ci\x1b[2J\u202e\n" + strings.Repeat("x", 1<<20)
	var texts []string
	for _, state := range []pullrequest.CheckState{pullrequest.CheckRed, pullrequest.CheckPending} {
		found, text, _ := evaluateRequiredChecks([]pullrequest.Check{{Name: name, State: state}}, nil)
		if found != state {
			t.Errorf("got %s, want %s", found, state)
		}
		texts = append(texts, text)
	}
	texts = append(texts, quoteNames([]string{name}), quoteNames(slices.Repeat([]string{name}, 50)))
	for _, text := range texts {
		if len(text) > 1000 || strings.ContainsFunc(text, foreign.IsHidden) || !strings.Contains(text, "ci<U+001B>") {
			t.Errorf("%d bytes: %.300q", len(text), text)
		}
	}
	if !strings.HasSuffix(texts[3], " and 45 more") {
		t.Errorf("got %q", texts[3])
	}
	if got := quoteNames([]string{"ann", "bob (may not write)"}); got != "ann, bob (may not write)" {
		t.Errorf("got %q", got)
	}
}
