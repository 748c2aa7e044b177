// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/strict"
)

// IgnoreAnnotation lists codes of rules, separated by commas, that are not to be reported for an object, or * for all. With a dot
// and one code behind it, as in prerig.dev/lint-ignore.PR107, the value is the reason. Both are read from the object and from its
// pod template. istioctl's galley.istio.io/analyze-suppress is honoured too, for the rules that answer one of its codes.
const (
	IgnoreAnnotation   = "prerig.dev/lint-ignore"
	suppressAnnotation = "galley.istio.io/analyze-suppress"
)

// TagReason is the tag that holds why a finding is suppressed; empty without a stated reason.
const TagReason = "prerig.dev/reason"

// NewPolicySeverities returns a policy's settings for rules: their severities and what it suppresses. A code that
// does not exist, an unreadable pattern and an empty reason are errors.
func NewPolicySeverities(l *v1alpha1.Lint) (Severities, error) {
	s, err := NewSeverities(l.Rules)
	if err != nil {
		return Severities{}, err
	}
	for i, one := range l.Suppress {
		for _, code := range one.Rules {
			if !isRule(code) {
				return Severities{}, strict.AtField(fmt.Errorf("reading spec.lint.suppress[%d].rules: there is no rule %q%s", i, code, strict.DidYouMean(code, allCodes())), "suppress", i, "rules")
			}
		}
		for _, pattern := range []string{one.Kind, one.Namespace, one.Name} {
			if _, err := path.Match(pattern, ""); err != nil {
				return Severities{}, strict.AtField(fmt.Errorf("reading spec.lint.suppress[%d]: the pattern %q cannot be read: a [ needs its ], and \\[ is the character itself", i, pattern), "suppress", i)
			}
		}
		if strings.TrimSpace(one.Reason) == "" {
			return Severities{}, strict.AtField(fmt.Errorf("reading spec.lint.suppress[%d]: it has no reason; say why the findings are accepted", i), "suppress", i)
		}
	}
	s.suppressions = slices.Clone(l.Suppress)
	return s, nil
}

// suppressionCovers reports whether a suppression is for a rule and an object. What it does not name, it leaves open.
func suppressionCovers(s v1alpha1.LintSuppression, r *Rule, ref result.ResourceRef) bool {
	return (len(s.Rules) == 0 || slices.Contains(s.Rules, r.Code)) &&
		matchesPathPattern(s.Kind, ref.Kind) && matchesPathPattern(s.Namespace, ref.Namespace) && matchesPathPattern(s.Name, ref.Name)
}

func matchesPathPattern(pattern, text string) bool {
	ok, _ := path.Match(pattern, text)
	return pattern == "" || ok
}

// suppressionOfFinding reports whether a finding of the rule about the object is suppressed, and why.
func (s Severities) suppressionOfFinding(r *Rule, by ignoredRules, ref result.ResourceRef) (reason string, ok bool) {
	if reason, ok := by.suppressionReason(r); ok {
		return reason, true
	}
	for _, one := range s.suppressions {
		if suppressionCovers(one, r, ref) {
			return one.Reason, true
		}
	}
	return "", false
}

// ignoredRules is what the annotations of an object suppress.
type ignoredRules struct {
	own     []string
	istio   []string
	reasons map[string]string // by code
}

func (p *pod) suppressedByAnnotations() ignoredRules {
	return parseIgnoredRules(p.in.ObjectAnnotations, p.annotations)
}

func parseIgnoredRules(all ...map[string]string) ignoredRules {
	var ig ignoredRules
	for _, annotations := range all {
		ig.own = append(ig.own, fieldsOf(annotations[IgnoreAnnotation])...)
		ig.istio = append(ig.istio, fieldsOf(annotations[suppressAnnotation])...)
		for key, value := range annotations {
			if code, ok := strings.CutPrefix(key, IgnoreAnnotation+"."); ok {
				if ig.reasons == nil {
					ig.reasons = map[string]string{}
				}
				ig.reasons[code] = value
			}
		}
	}
	return ig
}

// suppressionReason reports whether the rule is suppressed, and why.
func (ig ignoredRules) suppressionReason(r *Rule) (string, bool) {
	if text, ok := ig.reasons[r.Code]; ok {
		return text, true
	}
	if slices.Contains(ig.own, r.Code) || slices.Contains(ig.own, "*") {
		return "", true
	}
	return "", slices.ContainsFunc(r.Analyzers, func(code string) bool {
		return slices.Contains(ig.istio, code) || slices.Contains(ig.istio, "*")
	})
}

func fieldsOf(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
}
