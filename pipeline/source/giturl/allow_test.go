// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package giturl_test

import (
	"testing"

	"github.com/prerig/prerig/pipeline/source/giturl"
)

func TestPatternsRefused(t *testing.T) {
	for _, text := range []string{
		"", "*", "/*", "https://*", "https://*/org", "https://git.example.com", "https://git.example.com/", "https://git.example.com/o*g/repo", "https://git.example.com/org/**",
		"https://u:p@git.example.com/org/repo", "file:///srv/*", "https://git.example.com/org/../*", "git@git.example.com/org/*", "oci://git.example.com/org/repo",
	} {
		if p, err := giturl.ParsePattern(text); err == nil {
			t.Errorf("%q was accepted: %+v", text, p)
		}
	}
}
