// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/strict"
)

// Rule is one thing that is checked. Its code never changes its meaning.
type Rule struct {
	Code string
	// Title says what is wrong, in a few words.
	Title string
	// Severity is the default; a policy or a flag can set another one.
	Severity result.Severity
	// Why says what happens, and Change what to do about it.
	Why, Change string
}

// The codes of the rules.
const (
	codeUnknownField      = "schema-unknown-field"
	codeWrongType         = "schema-wrong-type"
	codeRequired          = "schema-required"
	codeWrongValue        = "schema-wrong-value"
	codeMetadata          = "schema-metadata"
	codeUnservedKind      = "schema-unserved-kind"
	codeUndescribedKind   = "schema-undescribed-kind"
	codeCustomRule        = "schema-custom-rule"
	codeInvalidDefinition = "schema-invalid-definition"
)

var rules = []Rule{
	{
		codeUnknownField, "A field that the kind does not have", result.Error,
		"The API server refuses it where fields are validated strictly, as kubectl asks for, and drops it silently elsewhere.",
		"Correct the name, or move the field to where it belongs; --kubernetes-version says which version is meant.",
	},
	{
		codeWrongType, "A value of a wrong type", result.Error,
		"The API server cannot decode the object and refuses it.",
		"Write a value of the type that the message names; text such as yes, 1 or 1e3 must be quoted to stay text.",
	},
	{
		codeRequired, "A required field is missing", result.Error,
		"The API server refuses the object.",
		"Add the field.",
	},
	{
		codeWrongValue, "A value that is not allowed", result.Error,
		"The API server refuses the object.",
		"Write one of the values that the message allows.",
	},
	{
		codeMetadata, "A name, label or annotation that is not valid", result.Error,
		"The API server refuses the object.",
		"Correct the metadata as the message says.",
	},
	{
		codeUnservedKind, "A kind that the version of Kubernetes does not have", result.Error,
		"The API server does not know the kind, so that the object cannot be applied.",
		"Use the apiVersion that the cluster serves.",
	},
	{
		codeUndescribedKind, "A custom resource without its definition", result.Warning,
		"Nothing says what is valid for it, so that it was not checked.",
		"Give its CustomResourceDefinition among the objects, or in a directory that --crds names.",
	},
	{
		codeCustomRule, "A custom resource breaks a rule of its definition", result.Error,
		"The API server evaluates the x-kubernetes-validations of the definition, and refuses the object.",
		"Change the object as the message says.",
	},
	{
		codeInvalidDefinition, "A CustomResourceDefinition that is not valid", result.Error,
		"The API server refuses the definition, or does not serve its kind.",
		"Correct the definition.",
	},
}

// Rules returns all rules.
func Rules() []Rule { return slices.Clone(rules) }

// Lookup finds a rule by its code.
func Lookup(code string) (Rule, bool) {
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.Code == code })
	if i < 0 {
		return Rule{}, false
	}
	return rules[i], true
}

// Severities says how severe each rule is. The zero value holds every rule at its default.
type Severities struct{ rule map[string]result.Severity }

// NewSeverities reads a map of codes to Error, Warning, Info or Off. A code or a word that does not exist is an error: a typo must not
// switch a check off.
func NewSeverities(byCode map[string]string) (Severities, error) {
	s := Severities{rule: map[string]result.Severity{}}
	for _, code := range slices.Sorted(maps.Keys(byCode)) {
		if _, ok := Lookup(code); !ok {
			var known []string
			for _, r := range rules {
				known = append(known, r.Code)
			}
			return Severities{}, fmt.Errorf("reading the severity of rule %q: there is no such rule%s", code, strict.DidYouMean(code, known))
		}
		level, err := result.ParseSeverity(byCode[code])
		if err != nil {
			return Severities{}, fmt.Errorf("reading the severity of rule %s: %w", code, err)
		}
		s.rule[code] = level
	}
	return s, nil
}

// of returns the severity of a rule; empty where it is off.
func (s Severities) of(code string) result.Severity {
	if level, ok := s.rule[code]; ok {
		return level
	}
	r, _ := Lookup(code)
	return r.Severity
}
