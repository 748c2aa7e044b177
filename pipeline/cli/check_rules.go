// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/lint/format"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// The codes of what the injection itself finds.
const (
	codeInjectionFailed   = "injection-failed"
	codeInjectionWarning  = "injection-warning"
	codeInjectionOutdated = "injection-outdated"
	codeInjectionOverlay  = "injection-overlay"
)

// injectionRules describe what the injection itself finds.
var injectionRules = []format.Rule{
	{
		Code: codeInjectionFailed, Title: "A workload that cannot be injected", Severity: result.Error,
		Why:    "prerig inject writes nothing because of it, and the cluster's webhook would reject its pods.",
		Change: "Change the field that the message names, or exclude the workload from the injection.",
	},
	{
		Code: codeInjectionWarning, Title: "A warning of the injection", Severity: result.Warning,
		Why:    "The injection succeeds, and its result may differ from the intended one.",
		Change: "Change what the message names.",
	},
	{
		Code: codeInjectionOutdated, Title: "An injection that does not match the policy", Severity: result.Warning,
		Why:    "The file has the sidecar of another policy or of an earlier version, so that the pods differ from those that the policy describes.",
		Change: "Inject the file again with prerig inject -i, and commit the result.",
	},
	{
		Code: codeInjectionOverlay, Title: "A kustomization that breaks an injection in place",
		Severity: result.Warning,
		Why:      "The kustomization addresses by position, or replaces, a list that the injection changes; it would then change another element.",
		Change:   "Inject the output of kustomize build instead of its bases, or patch by names instead of positions.",
	},
}

// rules returns the rules of the parts that run.
func (c checkParts) rules() (out []format.Rule) {
	if c.injection {
		for _, r := range injectionRules {
			r.Group, r.Document = "Injection", "docs/cli.md"
			out = append(out, r)
		}
	}
	if c.lint {
		for _, r := range lint.Rules() {
			out = append(out, describeLintRule(r))
		}
	}
	if c.gate {
		for _, r := range gate.Rules() {
			out = append(out, format.Rule{
				Code: r.Code, Title: r.Title, Why: r.Why, Change: r.Change, Severity: r.Severity, Group: "Gate",
				Document: "docs/gate.md",
			})
		}
	}
	return out
}

func describeLintRule(r lint.Rule) format.Rule {
	return format.Rule{
		Code: r.Code, Title: r.Title, Why: r.Why, Change: r.Change, Severity: r.Severity, Group: r.Group(),
		Document: lint.DocumentPath,
	}
}

// describedRules returns the rules for SARIF. The gate alone describes those of lint that have rejected a pod.
func (c checkParts) describedRules(rejected result.Results) (out []format.Rule) {
	if !c.lint {
		for _, r := range lint.Rules() {
			if slices.ContainsFunc(rejected, func(one result.Result) bool { return one.Tags[result.TagCode] == r.Code }) {
				out = append(out, describeLintRule(r))
			}
		}
	}
	return append(out, c.rules()...)
}

func ruleCodes(rules []format.Rule) []string {
	var out []string
	for _, r := range rules {
		out = append(out, r.Code)
	}
	return out
}

// ruleCompletions are the codes with their titles, for a shell.
func ruleCompletions(rules []format.Rule) []string {
	var out []string
	for _, r := range rules {
		out = append(out, r.Code+"\t"+r.Title)
	}
	return out
}

// printRules prints the rules of the parts, or one rule of any part.
func (c *checkRun) printRules() error {
	if c.explain != "" {
		return c.explainRule()
	}
	rules := c.rules()
	width := 0
	for _, r := range rules {
		width = max(width, len(r.Code))
	}
	for _, r := range rules {
		line := fmt.Sprintf("%-*s  %-7s  %-11s  %s\n", width, r.Code, severityOrOff(r.Severity), r.Group, r.Title)
		if _, err := fmt.Fprint(c.streams.Out, line); err != nil {
			return err
		}
	}
	return nil
}

func severityOrOff(s result.Severity) string {
	if s == "" {
		return "off"
	}
	return string(s)
}

// explainRule prints everything about one rule. The parts explain each other's codes.
func (c *checkRun) explainRule() error {
	if r, ok := lint.Lookup(strings.ToUpper(c.explain)); ok {
		_, err := fmt.Fprint(c.streams.Out, r.Explain())
		return err
	}
	all := allParts.rules()
	code := strings.ToLower(c.explain)
	i := slices.IndexFunc(all, func(r format.Rule) bool { return r.Code == code })
	if i < 0 {
		hint := strict.DidYouMean(c.explain, ruleCodes(all))
		if strings.HasPrefix(code, "pr") {
			hint = ""
		}
		return fmt.Errorf("--explain %s: no rule has this code%s; prerig check --list-rules lists all", c.explain, hint)
	}
	r := all[i]
	_, err := fmt.Fprintf(c.streams.Out, "%s  %s (%s, %s)\n\n%s\n\nWhat to change: %s\n", r.Code, r.Title, r.Group,
		severityOrOff(r.Severity), r.Why, r.Change)
	return err
}

// severities are those that flags set, by the parts that they are for.
type severities struct{ injection, lint, gate map[string]string }

// parseSeverities reads --rule, and switches off the rules of lint that --profile leaves out, unless --rule names them.
func (c *checkRun) parseSeverities() (severities, error) {
	out := severities{injection: map[string]string{}, lint: map[string]string{}, gate: map[string]string{}}
	example := "PR201=Error"
	if !c.lint {
		example = "schema-unknown-field=Warning"
	}
	given, err := c.ruleSeverities(example)
	if err != nil {
		return out, err
	}
	for _, code := range slices.Sorted(maps.Keys(given)) {
		if err := out.set(c.checkParts, code, given[code]); err != nil {
			return out, fmt.Errorf("--rule: %w", err)
		}
	}
	if !c.lint {
		return out, nil
	}
	for _, r := range lint.Rules() {
		if _, named := out.lint[r.Code]; !named && !r.In(c.profile) {
			out.lint[r.Code] = "Off"
		}
	}
	return out, nil
}

// set records the severity of a rule of one of the parts.
func (s severities) set(c checkParts, code, severity string) error {
	_, isLint := lint.Lookup(code)
	_, isGate := gate.Lookup(code)
	switch {
	case c.lint && (isLint || !c.gate):
		s.lint[code] = severity
		_, err := lint.NewSeverities(map[string]string{code: severity})
		return err
	case c.gate && (isGate || !c.lint):
		s.gate[code] = severity
		_, err := gate.NewSeverities(map[string]string{code: severity})
		return err
	case slices.Contains(ruleCodes(injectionRules), code):
		s.injection[code] = severity
		_, err := result.ParseSeverity(severity)
		return err
	}
	return fmt.Errorf("no rule has the code %q%s; --list-rules lists them", code,
		strict.DidYouMean(code, ruleCodes(c.rules())))
}
