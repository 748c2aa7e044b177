// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link        = regexp.MustCompile(`\]\(([^()\s]+(?:\([^()]*\)[^()\s]*)?)\)`)
	heading     = regexp.MustCompile(`^#{1,6} +(.*?)(?: +#+)?$`)
	headingLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	codeSpan    = regexp.MustCompile("`[^`]*`")
)

// TestLinks follows every relative link of every Markdown file to a file and, where it has one, to a heading. Links to other
// sites are not followed.
func TestLinks(t *testing.T) {
	followed := 0
	for name := range strings.FieldsSeq(git(t, "..", "ls-files", "-co", "--exclude-standard", "--", "*.md")) {
		if _, err := os.Stat(filepath.Join("..", name)); err != nil { // deleted, and not committed
			continue
		}
		for i, line := range proseLines(t, name) {
			for _, found := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
				if regexp.MustCompile(`^[a-z]+:`).MatchString(found[1]) {
					continue
				}
				followed++
				if err := follow(t, name, found[1]); err != nil {
					t.Errorf("%s:%d: %v", name, i+1, err)
				}
			}
		}
	}
	if followed < 80 {
		t.Errorf("followed only %d links", followed)
	}
}

// follow reports what is wrong with a link of a page.
func follow(t *testing.T, page, target string) error {
	t.Helper()
	file, name, hasAnchor := strings.Cut(target, "#")
	at := page
	if file != "" {
		at = path.Join(path.Dir(page), file)
	}
	if _, err := os.Stat(filepath.Join("..", at)); err != nil {
		return fmt.Errorf("the link %s leads nowhere", target)
	}
	if hasAnchor && strings.HasSuffix(at, ".md") && !anchors(t, at)[name] {
		return fmt.Errorf("the link %s: %s has no such heading", target, at)
	}
	return nil
}

// proseLines are the lines of a page, with those of fenced blocks empty.
func proseLines(t *testing.T, name string) []string {
	t.Helper()
	lines := strings.Split(string(read(t, filepath.Join("..", name))), "\n")
	fenced := false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fenced || fence {
			lines[i] = ""
		}
		if fence {
			fenced = !fenced
		}
	}
	return lines
}

// anchors are the names that Git hosts give to the headings of a page, with a number for one that is there again.
func anchors(t *testing.T, name string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, line := range proseLines(t, name) {
		if found := heading.FindStringSubmatch(line); found != nil {
			first := anchor(found[1])
			unique := first
			for n := 1; out[unique]; n++ {
				unique = fmt.Sprintf("%s-%d", first, n)
			}
			out[unique] = true
		}
	}
	return out
}

// anchor is the text of a heading in lower case, with hyphens for spaces and without punctuation.
func anchor(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, headingLink.ReplaceAllString(text, "$1"))
}

// TestAnchor has headings whose names are known from Git hosts.
func TestAnchor(t *testing.T) {
	for text, want := range map[string]string{
		"spec.istio":                          "specistio",
		"Getting a policy: `prerig import`":   "getting-a-policy-prerig-import",
		"The cluster's own webhook":           "the-clusters-own-webhook",
		"… a version of [Istio](https://x.y)": "-a-version-of-istio",
	} {
		if got := anchor(text); got != want {
			t.Errorf("%q has the anchor %q, want %q", text, got, want)
		}
	}
}
