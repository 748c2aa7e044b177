// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/prerig/prerig/pipeline/review"
	"github.com/prerig/prerig/pipeline/review/diff/group"
)

// Limits of Markdown. GitHub accepts comments of up to 65,536 characters, GitLab more; bytes are never fewer than
// characters.
const (
	// MaxMarkdown bounds all of it, in bytes.
	MaxMarkdown = 65_000
	// maxSection bounds one change, so that a large one does not hide all others.
	maxSection = 20_000
	// maxProblem bounds one problem's text, maxProblems that of all together.
	maxProblem  = 1_000
	maxProblems = 20_000
	// maxOpen is how many changes are shown without a click.
	maxOpen = 3
	// kept is left for saying what is missing.
	kept = 300
)

// Markdown writes a comparison for a comment on a pull request. It is never longer than MaxMarkdown, and reports
// what it has omitted.
func (c *Comparison) Markdown(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "### Rendered manifests\n\n%s\n", escapeMarkdown(c.summaryLine()))
	problems := c.commonProblems()
	for i, p := range problems {
		text := fmt.Sprintf("\n> **%s: %s:** %s\n", p.kind, escapeMarkdown(cutText(p.pipelineNames())),
			escapeMarkdown(cutText(p.text)))
		if out.Len()+len(text) > maxProblems {
			fmt.Fprintf(&out, "\n> **and %s**, which `prerig diff` shows\n",
				countWithNoun(len(problems)-i, "more problem"))
			break
		}
		out.WriteString(text)
	}
	writeFindings(&out, c.findingLines())
	for i, text := range c.comparedWith() {
		if i == 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "- compared with the %s\n", escapeMarkdown(cutText(text)))
	}
	places := c.placeCounts()
	for i, change := range c.Changes {
		text := writeChange(change, places, len(c.Changes) <= maxOpen)
		if out.Len()+len(text)+kept > MaxMarkdown {
			objects := 0
			for _, left := range c.Changes[i:] {
				objects += len(left.Objects)
			}
			fmt.Fprintf(&out, "\n**%s, of %s, %s left out here:** a comment has no room for more. `prerig diff` shows them.\n",
				countWithNoun(len(c.Changes)-i, "more change"), countWithNoun(objects,
					"object"), map[bool]string{true: "is", false: "are"}[len(c.Changes)-i == 1])
			break
		}
		out.WriteString(text)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// writeFindings writes findings about changes, as many as fit.
func writeFindings(out *strings.Builder, findings []string) {
	for i, one := range findings {
		text := fmt.Sprintf("- %s\n", escapeMarkdown(cutText(one)))
		if i == 0 {
			text = "\n" + text
		}
		if out.Len()+len(text) > maxProblems {
			fmt.Fprintf(out, "- and %s, which `prerig diff` shows\n", countWithNoun(len(findings)-i, "more finding"))
			return
		}
		out.WriteString(text)
	}
}

func writeChange(c group.Change, places map[string]int, open bool) string {
	var out strings.Builder
	tag := "<details>"
	if open {
		tag = "<details open>"
	}
	fmt.Fprintf(&out, "\n%s<summary>%s</summary>\n\n", tag, escapeMarkdown(cutText(c.Title("pipeline"))))
	for _, text := range listObjects(c, places) {
		fmt.Fprintf(&out, "- %s\n", escapeMarkdown(cutText(text)))
	}
	if why := destroyedBy(c); why != "" {
		fmt.Fprintf(&out, "\n**Deleted %s.**\n", why)
	}
	if legend := c.Legend(); legend != "" {
		fmt.Fprintf(&out, "\n%s\n", escapeMarkdown(legend))
	}
	text, left := diffText(c)
	out.WriteString("\n" + review.FencedBlock("diff", text))
	if left > 0 {
		fmt.Fprintf(&out, "\n**%s of this change %s left out here.** `prerig diff` shows them.\n",
			countWithNoun(left, "more line"), map[bool]string{true: "is", false: "are"}[left == 1])
	}
	out.WriteString("\n</details>\n")
	return out.String()
}

// diffText returns the lines of a change that fit, and the number of the others.
func diffText(c group.Change) (text string, left int) {
	var out strings.Builder
	for _, hunk := range c.Hunks {
		lines := strings.TrimSpace("@@ "+oneLine(hunk.At)) + "\n" + hunk.Text
		for l := range strings.Lines(lines) {
			if left > 0 || out.Len()+len(l) > maxSection {
				left++
				continue
			}
			out.WriteString(l)
		}
	}
	return out.String(), left
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// cutText shortens a text to maxProblem bytes and marks that.
func cutText(text string) string {
	if len(text) <= maxProblem {
		return text
	}
	end := maxProblem
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// escapeMarkdown keeps what comes from a source from being markup, a link or a mention.
func escapeMarkdown(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\n", " ", "\r", " ", "`", "&#96;", "*", "&#42;",
		"_", "&#95;",
		"[", "&#91;", "]", "&#93;", "|", "&#124;", "@", "&#64;", "#", "&#35;", "!", "&#33;", "~", "&#126;", "\\",
		"&#92;", "://", "&#58;//").Replace(text)
}
