// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"sort"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/strict"
)

// Rule is one thing that is checked. Its code never changes its meaning and is never used again for another rule.
type Rule struct {
	// Code such as PR101. The first digit is the group.
	Code string
	// RuleText is what people read about it.
	RuleText
	// Severity is the default; empty means that the rule is off unless a policy sets it.
	Severity result.Severity
	// Audience is who can change what the rule finds.
	Audience Audience
	// Mesh reports whether its findings in injected containers mostly come from a setting of the mesh, the same for
	// all workloads.
	Mesh bool
	// Always is the severity of findings that every injection reports, even if no policy asks for findings; empty for other rules. The
	// API server rejects such a pod, or it never runs. Findings that depend on something unknown are left out; see [Always].
	Always result.Severity
	// Analyzers are the codes of istioctl analyze that the rule answers, such as IST0144.
	Analyzers []string

	// concerns reports cheaply whether check may find something in a pod; nil means that it may.
	concerns func(*Input) bool
	check    func(*pod) []finding
	// concernsSet is concerns for checkSet.
	concernsSet func(*workloadSet) bool
	checkSet    func(*workloadSet) []setFinding
}

// RuleText describes a rule; see rules.yaml.
type RuleText struct {
	// Title describes what is wrong, in a few words.
	Title string `json:"title"`
	// Why describes what happens, and Change what to do about it.
	Why    string `json:"why"`
	Change string `json:"change"`
	// Issues are the reports that the rule answers: numbers of github.com/istio/istio, or repository#number.
	Issues []string `json:"issues"`
}

// Groups of rules by the first digit of their code, for people who read the list.
var groups = map[byte]string{
	'1': "Termination",
	'2': "Start",
	'3': "Jobs",
	'4': "Resources",
	'5': "Security",
	'6': "Injection",
	'7': "Namespaces",
	'8': "Traffic",
	'9': "Ambient mode",
}

// Group is the heading under which the rule is described.
func (r Rule) Group() string { return groups[r.Code[2]] }

// Rules returns all rules in the order of their codes.
func Rules() []Rule { return slices.Clone(described()) }

// Lookup finds a rule by its code.
func Lookup(code string) (Rule, bool) {
	if !isRule(code) {
		return Rule{}, false
	}
	all := described()
	return all[slices.IndexFunc(all, func(r Rule) bool { return r.Code == code })], true
}

// isRule reports whether a rule has the code.
func isRule(code string) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool { return r.Code == code })
}

// allCodes returns the codes of all rules.
func allCodes() []string {
	codes := make([]string, len(rules))
	for i := range rules {
		codes[i] = rules[i].Code
	}
	return codes
}

// Severities holds the severity of each rule, and which of its findings a policy suppresses. The zero value holds
// every rule at its default.
type Severities struct {
	off  bool
	sure bool                       // findings that depend on something unknown are left out
	rule map[string]result.Severity // "" switches the rule off

	suppressions []v1alpha1.LintSuppression
}

// Off switches every rule off.
func Off() Severities { return Severities{off: true} }

// Always holds the rules whose findings every injection reports, at [Rule.Always]; every other rule is off. What the API server rejects by
// the pod alone is an error of the injection itself. If a policy switches findings off, only errors remain.
func Always(errorsOnly bool) Severities {
	s := Severities{off: true, sure: true, rule: map[string]result.Severity{}}
	for _, r := range rules {
		if r.Always == result.Error || r.Always != "" && !errorsOnly {
			s.rule[r.Code] = r.Always
		}
	}
	return s
}

// NewSeverities reads a policy's map of codes to Error, Warning, Info or Off. A code or a word that does not exist is an
// error: a typo must not switch a check off.
func NewSeverities(byCode map[string]string) (Severities, error) {
	s := Severities{rule: make(map[string]result.Severity, len(byCode))}
	codes := make([]string, 0, len(byCode))
	for code := range byCode {
		codes = append(codes, code)
	}
	sort.Strings(codes)
	for _, code := range codes {
		if !isRule(code) {
			return Severities{}, strict.AtField(fmt.Errorf("there is no rule %q%s; prerig check --list-rules lists them", code, strict.DidYouMean(code, allCodes())), "rules", code)
		}
		level, err := result.ParseSeverity(byCode[code])
		if err != nil {
			return Severities{}, strict.AtField(fmt.Errorf("reading the severity of rule %s: %w", code, err), "rules", code)
		}
		s.rule[code] = level
	}
	return s, nil
}

func (s Severities) severityOfRule(r *Rule) result.Severity {
	if level, ok := s.rule[r.Code]; ok {
		return level
	}
	if s.off {
		return ""
	}
	return r.Severity
}
