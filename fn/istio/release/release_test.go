// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import "testing"

func TestSpansWithBranches(t *testing.T) {
	spans := Since("1.23.6", "1.24.4", "1.25.1", "1.26")
	for r, want := range map[Release]bool{
		{22, 9}: false, {23, 5}: false, {23, 6}: true, {23, 7}: true, {24, 0}: false, {24, 3}: false, {24, 4}: true,
		{25, 0}: false, {25, 1}: true, {26, 0}: true, {31, 2}: true, {40, 0}: true,
	} {
		if got := spans.Contains(r); got != want {
			t.Errorf("%s: got %t, want %t", r, got, want)
		}
	}
	for minor, want := range map[int]bool{22: false, 23: true, 24: true, 25: true, 26: false, 31: false} {
		if got := spans.DependsOnPatch(minor); got != want {
			t.Errorf("1.%d depends on the patch: got %t, want %t", minor, got, want)
		}
	}
	if between := Between("1.1", "1.4.4"); !between.DependsOnPatch(4) || between.DependsOnPatch(1) || between.Contains(Release{4, 5}) || !between.Contains(Release{4, 4}) {
		t.Errorf("%s does not end with 1.4.4", between)
	}
}

func TestSpansAsText(t *testing.T) {
	for want, spans := range map[string]Spans{
		"every version":                      Always(),
		"1.28 and later":                     Since("1.28"),
		"1.9 to 1.27":                        Between("1.9", "1.27"),
		"1.3":                                Between("1.3", "1.3"),
		"1.6.0":                              Between("1.6.0", "1.6.0"),
		"1.9 and later":                      Between("1.9", "1.10").And(Since("1.11")),
		"1.6.1 to 1.7":                       Between("1.6.1", "1.7"),
		"1.20.0 to 1.20.6":                   Between("1.20.0", "1.20.6"),
		"1.1 to 1.4.4":                       Between("1.1", "1.4.4"),
		"1.27.6 to 1.27.x, 1.28.4 and later": Since("1.27.6", "1.28.4"),
		"1.2.0 to 1.2.5, 1.3 and later":      Between("1.2", "1.2.5").And(Since("1.3")),
	} {
		if got := spans.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestKnown(t *testing.T) {
	for r, want := range map[Release]bool{{30, 8}: true, {30, 9}: false, {32, 0}: true, {33, 0}: false, {0, 0}: true, Newest(12): true, Newest(40): false} {
		if got := r.Known(); got != want {
			t.Errorf("%s: got %t, want %t", r, got, want)
		}
	}
	if len(newestPatches) != NewestMinor+1 {
		t.Errorf("there are %d minors with a newest patch, want %d", len(newestPatches), NewestMinor+1)
	}
}
