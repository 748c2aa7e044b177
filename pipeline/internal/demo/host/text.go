// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"html"
	"html/template"
	"regexp"
	"strings"

	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// fileDiff is the difference of one file.
type fileDiff struct {
	Name    string
	Added   int
	Removed int
	Lines   []diffLine
}

type diffLine struct{ Kind, Text string }

// readDiff returns the difference that a git command prints, such as show or diff, by files. Records of Prerig come
// last.
func readDiff(ctx context.Context, r *testbed.Repository, args ...string) ([]fileDiff, error) {
	text, err := r.Git(ctx, append(args, "--")...)
	if err != nil {
		return nil, err
	}
	var shown, records []fileDiff
	for _, one := range splitDiff(text) {
		if strings.HasPrefix(one.Name, ".prerig/") {
			records = append(records, one)
			continue
		}
		shown = append(shown, one)
	}
	return append(shown, records...), nil
}

func splitDiff(text string) []fileDiff {
	var out []fileDiff
	inHunk := false
	for line := range strings.SplitSeq(text, "\n") {
		if rest, ok := strings.CutPrefix(line, "diff --git a/"); ok {
			name, _, _ := strings.Cut(rest, " b/")
			out = append(out, fileDiff{Name: name})
			inHunk = false
			continue
		}
		inHunk = inHunk || strings.HasPrefix(line, "@@")
		if len(out) == 0 || !inHunk {
			continue
		}
		last := &out[len(out)-1]
		kind := kindOf(line)
		switch kind {
		case "add":
			last.Added++
		case "del":
			last.Removed++
		}
		last.Lines = append(last.Lines, diffLine{kind, line})
	}
	return out
}

// kindOf is the class of a line of a difference.
func kindOf(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return "add"
	case strings.HasPrefix(line, "-"):
		return "del"
	case strings.HasPrefix(line, "@@"):
		return "at"
	}
	return "same"
}

var (
	// definitionRule matches the definition of a link, which Markdown does not show.
	definitionRule = regexp.MustCompile(`^\[[^\]]+\]: `)
	emphasisRule   = regexp.MustCompile(`^_([^_]+)_$`)

	codeRule     = regexp.MustCompile("`([^`]+)`")
	boldRule     = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	linkRule     = regexp.MustCompile(`\[([^\]]+)\]\((https?://[^)\s]+)\)`)
	detailsRule  = regexp.MustCompile(`^&lt;(/?(?:details|summary))&gt;|&lt;(/?(?:details|summary))&gt;`)
	commentRule  = regexp.MustCompile(`(?s)<!--.*?-->`)
	unescapeRule = regexp.MustCompile(`\\([\\` + "`" + `*_{}\[\]()#+.!|<>-])`)
)

// markdown returns the text of a pull request as HTML: headings, lists, tables, code and the folding elements that
// Prerig writes. All other markup is shown as text.
func markdown(text string) template.HTML {
	var b strings.Builder
	m := &markdownWriter{out: &b}
	for line := range strings.Lines(commentRule.ReplaceAllString(text, "")) {
		m.line(strings.TrimRight(line, "\r\n"))
	}
	m.to("")
	return template.HTML(b.String())
}

// markdownWriter writes one line after the other. in is the open element: pre, ul, table, p or none.
type markdownWriter struct {
	out   *strings.Builder
	in    string
	fence string
}

// to closes the open element and opens another.
func (m *markdownWriter) to(element string) {
	if m.in == element {
		return
	}
	if m.in != "" {
		m.out.WriteString("</" + m.in + ">\n")
	}
	if element != "" {
		m.out.WriteString("<" + element + ">")
	}
	m.in = element
}

func (m *markdownWriter) line(line string) {
	trimmed := strings.TrimSpace(line)
	if m.fence != "" {
		m.codeLine(line, trimmed)
		return
	}
	depth := len(trimmed) - len(strings.TrimLeft(trimmed, "#"))
	switch {
	case strings.HasPrefix(trimmed, "```"):
		m.fence = trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		m.to("pre")
	case trimmed == "", definitionRule.MatchString(trimmed):
		m.to("")
	case strings.Trim(trimmed, "-") == "" && len(trimmed) >= 3:
		m.to("")
		m.out.WriteString("<hr>\n")
	case depth > 0 && depth <= 6 && strings.HasPrefix(trimmed[depth:], " "):
		m.to("")
		m.out.WriteString("<h3>" + inline(trimmed[depth:]) + "</h3>\n")
	case strings.HasPrefix(trimmed, "- "), strings.HasPrefix(trimmed, "* "):
		m.to("ul")
		m.out.WriteString("<li>" + inline(trimmed[2:]) + "</li>")
	case strings.HasPrefix(trimmed, "|"):
		m.tableRow(trimmed)
	case strings.HasPrefix(trimmed, "<details>"), strings.HasPrefix(trimmed, "</details>"),
		strings.HasPrefix(trimmed, "<summary>"):
		m.to("")
		m.out.WriteString(inline(trimmed) + "\n")
	default:
		m.to("p")
		m.out.WriteString(inline(trimmed) + "\n")
	}
}

func (m *markdownWriter) codeLine(line, trimmed string) {
	if trimmed == m.fence {
		m.fence = ""
		m.to("")
		return
	}
	m.out.WriteString(`<span class="` + kindOf(line) + `">` + html.EscapeString(line) + "\n</span>")
}

func (m *markdownWriter) tableRow(row string) {
	if strings.Trim(row, "|-: ") == "" {
		return
	}
	m.to("table")
	m.out.WriteString("<tr>")
	for cell := range strings.SplitSeq(strings.Trim(row, "|"), "|") {
		m.out.WriteString("<td>" + inline(strings.TrimSpace(cell)) + "</td>")
	}
	m.out.WriteString("</tr>")
}

// inline returns the text of a line as HTML.
func inline(text string) string {
	out := html.EscapeString(unescapeRule.ReplaceAllString(text, "$1"))
	out = detailsRule.ReplaceAllString(out, "<$1$2>")
	out = codeRule.ReplaceAllString(out, "<code>$1</code>")
	out = emphasisRule.ReplaceAllString(out, "<i>$1</i>")
	out = boldRule.ReplaceAllString(out, "<b>$1</b>")
	return linkRule.ReplaceAllString(out, `<a href="$2">$1</a>`)
}
