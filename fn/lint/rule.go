// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"sort"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/result"
)

// Rule is one thing that is checked. Its code never changes its meaning and is never used again for another rule.
type Rule struct {
	// Code such as PR101. The first digit is the group.
	Code string
	// Title describes what is wrong, in a few words.
	Title string
	// Severity is the default; empty means that the rule is off unless a policy sets it.
	Severity result.Severity
	// Audience is who can change what the rule finds.
	Audience Audience
	// Mesh reports whether its findings in injected containers mostly come from a setting of the mesh, the same for
	// all workloads.
	Mesh bool
	// Certain reports whether a pod with such a finding never runs, so that an injection reports it even if no
	// policy asks for findings; see [CheckCertain].
	Certain bool
	// Why describes what happens, and Change what to do about it.
	Why, Change string
	// Analyzers are the codes of istioctl analyze that the rule answers, such as IST0144.
	Analyzers []string
	// Issues are the reports that the rule answers: numbers of github.com/istio/istio, or repository#number.
	Issues []string

	check    func(*pod) []finding
	checkSet func(*workloadSet) []setFinding
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
}

// Group is the heading under which the rule is described.
func (r Rule) Group() string { return groups[r.Code[2]] }

var rules = func() []Rule {
	var all []Rule
	for _, group := range [][]Rule{
		terminationRules, startRules, jobRules, resourceRules, securityRules, injectionRules, proxyConfigRules, captureRules, annotationRules, setRules, serviceRules,
		limitRules, networkRules, trafficRules, gatewayRules, routeRules, conflictRules, referenceRules, evictionRules, shutdownRules,
		agentRules, holdRules, proxyEndRules, qualityRules, customKindRules, substitutionRules,
	} {
		all = append(all, group...)
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].Code < all[j].Code })
	return all
}()

// Rules returns all rules in the order of their codes.
func Rules() []Rule { return append([]Rule(nil), rules...) }

// Lookup finds a rule by its code.
func Lookup(code string) (Rule, bool) {
	for _, r := range rules {
		if r.Code == code {
			return r, true
		}
	}
	return Rule{}, false
}

// Severities holds the severity of each rule, and which of its findings a policy suppresses. The zero value holds
// every rule at its default.
type Severities struct {
	off  bool
	rule map[string]result.Severity // "" switches the rule off

	suppressions []v1alpha1.LintSuppression
}

// Off switches every rule off.
func Off() Severities { return Severities{off: true} }

// Rejections holds the rules at Error that find what the API server is certain to refuse because of other objects: LimitRanges,
// ResourceQuotas and the Pod Security level of the namespace. Every other rule is off. What it refuses by the pod alone is an error of the injection.
func Rejections() Severities {
	return Severities{off: true, rule: map[string]result.Severity{"PR407": result.Error, "PR408": result.Error, "PR504": result.Error}}
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
		if _, ok := Lookup(code); !ok {
			return Severities{}, fmt.Errorf("reading the severity of rule %q: there is no such rule", code)
		}
		level, err := result.ParseSeverity(byCode[code])
		if err != nil {
			return Severities{}, fmt.Errorf("reading the severity of rule %s: %w", code, err)
		}
		s.rule[code] = level
	}
	return s, nil
}

func (s Severities) of(r *Rule) result.Severity {
	if level, ok := s.rule[r.Code]; ok {
		return level
	}
	if s.off {
		return ""
	}
	return r.Severity
}
