// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"
)

// DocumentPath is where the page of the rules is in the repository; SARIF and people refer to its sections by code.
const DocumentPath = "fn/lint/RULES.md"

// Markdown returns the page that describes all rules.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# Rules\n\n" +
		"What `prerig lint`, and the function with each injection, check in a pod after injection. This page is generated from the code\n" +
		"(`go test ./fn/lint -update`).\n\n" +
		"A policy sets severities by code, and switches rules off:\n\n" +
		"```yaml\nspec:\n  lint:\n    rules:\n      PR201: Error\n      PR107: \"Off\"\n```\n\n" +
		"A finding that is accepted is suppressed on the object or its pod template, with the reason, by the annotation\n`" +
		IgnoreAnnotation + ".PR107: the application does not care`; several without a reason by `" + IgnoreAnnotation + ": PR201,PR107`, and\n" +
		"by istioctl's `" + suppressAnnotation + "` with the analyzer's code where the rule has one. A policy does it in\n" +
		"[`spec.lint.suppress`](../../docs/injection-policy.md#speclint).\n\n" +
		"The column *for* names who can change what the rule finds; `--profile` selects by it.\n\n" +
		"| code | rule | severity | for | analyzer |\n|---|---|---|---|---|\n")
	for _, r := range described() {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s | %s |\n", r.Code, strings.ToLower(r.Code), r.Title, r.severityText(), r.audienceText(), strings.Join(r.Analyzers, ", "))
	}
	group := ""
	for _, r := range described() {
		if r.Group() != group {
			group = r.Group()
			fmt.Fprintf(&b, "\n## %s\n", group)
		}
		fmt.Fprintf(&b, "\n### %s\n\n**%s.** Severity: %s. For: %s.\n\n%s\n\n*What to change.* %s\n", r.Code, r.Title, r.severityText(), r.audienceText(), r.Why, r.Change)
		if refs := r.References(); len(refs) > 0 {
			fmt.Fprintf(&b, "\n*Answers.* %s\n", strings.Join(refs, ", "))
		}
	}
	return b.String()
}

// Explain returns one rule for a terminal.
func (r Rule) Explain() string {
	out := fmt.Sprintf("%s  %s (%s, %s)\n\n%s\n\nWhat to change: %s\n", r.Code, r.Title, r.Group(), r.severityText(), r.Why, r.Change)
	if refs := r.References(); len(refs) > 0 {
		out += "\nAnswers: " + strings.Join(refs, ", ") + "\n"
	}
	return out
}

func (r Rule) severityText() string {
	if r.Severity == "" {
		return "off"
	}
	return string(r.Severity)
}

// References are the analyzers and reports that the rule answers, as people cite them.
func (r Rule) References() []string {
	var out []string
	for _, code := range r.Analyzers {
		out = append(out, "istioctl analyze "+code)
	}
	for _, issue := range r.Issues {
		switch {
		case strings.Contains(issue, "/"):
			out = append(out, issue)
		case strings.Contains(issue, "#"):
			out = append(out, "istio/"+issue)
		default:
			out = append(out, "istio/istio#"+issue)
		}
	}
	return out
}
