// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// Bounds of what is shown of others' texts, in bytes: names and messages, and one line of a manifest.
const (
	maxText = 300
	maxLine = 500
)

// codeSpan shows a text of others as one code span.
func codeSpan(text string) string { return longCodeSpan(text, maxText) }

func longCodeSpan(text string, most int) string {
	text = defuseClosingWords(truncateWithCount(foreign.Visible(strings.Join(strings.Fields(text), " ")), most))
	if text == "" {
		return "(empty)"
	}
	ticks := strings.Repeat("`", longestRun(text)+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return ticks + text + ticks
}

// FencedBlock shows a text as a fenced block of Markdown, in a language such as diff. The fence is longer than any row
// of backticks in the text, so that the text cannot end it.
func FencedBlock(language, text string) string {
	fence := strings.Repeat("`", max(2, longestRun(text))+1)
	return fence + language + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence + "\n"
}

// shownLine is a line of a difference, without its line end, as it is shown.
func shownLine(line string) string {
	return defuseClosingWords(truncateWithCount(foreign.Visible(line), maxLine))
}

func longestRun(text string) int {
	longest, run := 0, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// truncateWithCount shortens a text and appends the number of removed bytes.
func truncateWithCount(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d more bytes)", text[:end], len(text)-end)
}

var (
	// closingWord is what hosts take for the closing of an issue, if one follows: GitHub, GitLab, Gitea, Bitbucket and
	// Azure DevOps.
	closingWord = lazyregexp.New(`(?i)\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?|complete[sd]?|(?:re)?open(?:s|ed|ing)?)\b`)
	// issueAfter is an issue that follows.
	issueAfter = lazyregexp.New(`(?i)^[ \t]*[:\-]?[ \t]*(?:(?:issues?|bugs?|task|ticket)[ \t]+)?(?:[\w./-]*[#!&$][\w]|[a-z][a-z0-9_]+-[0-9]|gh-|gl-|https?:)`)
)

// wordJoiner is not seen. A text of others has none, as visible writes it out.
const wordJoiner = "\u2060"

// defuseClosingWords keeps words that close issues apart from the issues: hosts look for them in the raw text, too.
func defuseClosingWords(text string) string {
	var out strings.Builder
	from := 0
	for _, at := range closingWord.FindAllStringIndex(text, -1) {
		if !issueAfter.MatchString(text[at[1]:]) {
			continue
		}
		out.WriteString(text[from:at[1]] + wordJoiner)
		from = at[1]
	}
	if from == 0 {
		return text
	}
	out.WriteString(text[from:])
	return out.String()
}

var userInfo = lazyregexp.New(`://[^/]*@`)

// withoutPassword removes the user and the password from a URL.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return userInfo.ReplaceAllString(address, "://")
	}
	if u.User == nil {
		return address
	}
	if _, secret := u.User.Password(); !secret && u.Scheme == "ssh" {
		return address
	}
	u.User = nil
	return u.String()
}

// plainAddress matches a URL that can be a link: it contains no markup.
var plainAddress = lazyregexp.New(`^https?://[A-Za-z0-9._:\[\]-]+(?:/[A-Za-z0-9._~:/?#@!$&'()+,;=%-]*)?$`)

// plainKind matches a kind that can be used unquoted in our own text.
var plainKind = lazyregexp.New(`^[A-Z][A-Za-z0-9]{0,62}$`)

func shownKind(kind string) string {
	if plainKind.MatchString(kind) {
		return kind
	}
	return codeSpan(kind)
}

// countWithNoun returns a number of things of one kind.
func countWithNoun(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	switch {
	case strings.HasSuffix(what, "`"):
		return fmt.Sprintf("%d %s", n, what)
	case strings.HasSuffix(what, "cy"), strings.HasSuffix(what, "ry"), strings.HasSuffix(what, "ty"):
		return fmt.Sprintf("%d %sies", n, what[:len(what)-1])
	case strings.HasSuffix(what, "ss"):
		return fmt.Sprintf("%d %ses", n, what)
	case strings.HasSuffix(what, "s"):
		return fmt.Sprintf("%d %s", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
