// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/render/gate/validation"
)

// addValidation adds the problems that Kubernetes' own validation reports about an object, unless earlier findings
// cover them. first is the index of the earliest of these findings.
func (c *checker) addValidation(o gate.Object, v gate.Validated, first int) {
	if !c.isValidated(o) {
		return
	}
	if v.Error != "" {
		c.addFieldFinding(o, gate.CodeUnvalidated, nil, "Kubernetes' own validation did not check the object: "+v.Error)
	}
	earlier := c.results[first:len(c.results):len(c.results)]
	add := func(code string, p gate.ValidatedProblem, tail string) {
		path := fieldPath(p.Field, o.Value)
		if isAlreadyReported(earlier, p, path) || hasPlaceholder(o.Value, path) || isOfPlaceholderName(o, p) {
			return
		}
		if strings.Contains(p.Message, "unexpected internal error") {
			return // the check needs a server
		}
		if p.Injected {
			tail += " (only after the injection)"
		}
		c.addFieldFinding(o, code, path, problemMessage(o, p)+tail)
	}
	for _, p := range v.Create {
		add(gate.CodeInvalid, p, "")
	}
	earlier = c.results[first:len(c.results):len(c.results)]
	for _, p := range v.Apply {
		// Types and unknown fields are the schema's. What a new object is rejected for needs no second word.
		if p.Type == validation.TypeDuplicate && !isDuplicate(v.Create, fieldPath(p.Field, o.Value), o) {
			add(gate.CodeNotAppliable, p, "; server-side apply rejects the object")
		}
	}
}

// isValidated reports whether an object is of a built-in kind, and one that reaches the API server as it is here.
func (c *checker) isValidated(o gate.Object) bool {
	ref := o.Ref()
	if isForOtherTool(o) || isEncrypted(o.Value) || isLocal(o.Value) {
		return false
	}
	_, ok := c.server.Lookup(ref.APIVersion, ref.Kind)
	return ok
}

// isDuplicate reports whether problems report an entry of a list as a duplicate.
func isDuplicate(problems []gate.ValidatedProblem, list []any, o gate.Object) bool {
	name := workload.FieldString(list)
	return slices.ContainsFunc(problems, func(p gate.ValidatedProblem) bool {
		return p.Type == validation.TypeDuplicate && strings.HasPrefix(workload.FieldString(fieldPath(p.Field, o.Value)), name+"[")
	})
}

// isAlreadyReported reports whether earlier findings about the object cover a problem: one about the field or a field
// around it. Any finding about a type covers a decoding problem.
func isAlreadyReported(earlier result.Results, p gate.ValidatedProblem, path []any) bool {
	name := workload.FieldString(path)
	return slices.ContainsFunc(earlier, func(r result.Result) bool {
		code := r.Tags[result.TagCode]
		if p.Type == validation.TypeUndecodable && (code == gate.CodeWrongType || code == gate.CodeUnservedKind) {
			return true
		}
		return r.Field != nil && name != "" && (r.Field.Path == name || code == gate.CodeWrongType && strings.HasPrefix(name, r.Field.Path))
	})
}

// hasPlaceholder reports whether the value at a path, or one around it that is no mapping or list, is to be filled in by a tool that comes
// later, such as Flux.
func hasPlaceholder(object any, path []any) bool {
	for _, key := range path {
		if text, ok := key.(string); ok && podmap.HasPlaceholder(text) {
			return true
		}
		object = gate.Child(object, key)
	}
	return containsPlaceholder(object)
}

// isOfPlaceholderName reports whether a problem is about a label that the API server makes from the name, where a later build fills in the
// name: kustomize that of a Namespace, which is often "_" before.
func isOfPlaceholderName(o gate.Object, p gate.ValidatedProblem) bool {
	name := o.Ref().Name
	isFilledLater := name == "_" || podmap.HasPlaceholder(name)
	return isFilledLater && strings.Contains(p.Field, "labels") && strings.Contains(p.Message, strconv.Quote(name))
}

func containsPlaceholder(value any) bool {
	switch v := value.(type) {
	case string:
		return podmap.HasPlaceholder(v)
	case map[string]any:
		for key, item := range v {
			if podmap.HasPlaceholder(key) || containsPlaceholder(item) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, containsPlaceholder)
	}
	return false
}

// quotedValue is the value in a message of the API server.
var quotedValue = lazyregexp.New(`: "(?:[^"\\]|\\.)*"|: \{.*|: \[.*`)

// problemMessage returns the API server's message, without the values of Secrets.
func problemMessage(o gate.Object, p gate.ValidatedProblem) string {
	message, _, _ := strings.Cut(p.Message, "\n") // the rest shows types of Go
	if isSecret(o) {
		message = quotedValue.ReplaceAllString(message, "")
	}
	return message
}
