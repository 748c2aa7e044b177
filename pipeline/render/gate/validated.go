// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"slices"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/render/gate/validation"
)

// Validator answers what Kubernetes' own validation answers about objects of built-in kinds; validation.Program does.
type Validator interface {
	Ask(ctx context.Context, requests []validation.Request) ([]validation.Answer, error)
}

// NotInstalled reports that the program is not installed.
const NotInstalled = "Kubernetes' own validation (selectors, ports, mounts, schedules and the like) was not checked: there is no " +
	validation.Name + " beside prerig"

// InstalledValidator returns the program beside the running one that answers with Kubernetes' own validation; nil where there is none.
func InstalledValidator() Validator {
	if program, ok := validation.Installed(); ok {
		return program
	}
	return nil
}

// Validated is what Kubernetes' own validation answers about an object.
type Validated struct {
	// Create are the problems of the object as a new one, and Apply those of server-side apply.
	Create []ValidatedProblem `json:"create,omitempty"`
	Apply  []ValidatedProblem `json:"apply,omitempty"`
	// Update are the problems that only the change of the object has, and Ignored the fields whose change has no effect.
	Update  []ValidatedProblem `json:"update,omitempty"`
	Ignored []string           `json:"ignored,omitempty"`
	// Error is the reason the object was not validated; empty if it was.
	Error string `json:"error,omitempty"`
}

// ValidatedProblem is a problem, and whether the object has it only after its injection.
type ValidatedProblem struct {
	validation.Problem
	Injected bool `json:"injected,omitempty"`
}

// Validate returns a validator's answers about objects, in their order. It returns an error if the validator cannot
// be used.
func Validate(ctx context.Context, objects []Object, validator Validator) ([]Validated, error) {
	values := make([]map[string]any, len(objects))
	for i, o := range objects {
		values[i] = o.Value
	}
	out, err := validateCreateAndApply(ctx, values, validator)
	if err != nil {
		return nil, err
	}
	var indexes []int
	var written []map[string]any
	for i, o := range objects {
		if o.Before != nil && len(out[i].Create)+len(out[i].Apply) > 0 {
			indexes, written = append(indexes, i), append(written, o.Before)
		}
	}
	before, err := validateCreateAndApply(ctx, written, validator)
	if err != nil {
		return nil, err
	}
	for n, i := range indexes {
		markInjected(out[i].Create, before[n].Create)
		markInjected(out[i].Apply, before[n].Apply)
	}
	updates, err := ValidateUpdates(ctx, objects, validator)
	if err != nil {
		return nil, err
	}
	for i, u := range updates {
		out[i].Update, out[i].Ignored = u.Update, u.Ignored
		if out[i].Error == "" {
			out[i].Error = u.Error
		}
	}
	return out, nil
}

// validateCreateAndApply asks about each value as a new object, and about all of them as server-side apply reads them:
// it reads its types when the first one is asked for.
func validateCreateAndApply(ctx context.Context, values []map[string]any, validator Validator) ([]Validated, error) {
	if len(values) == 0 {
		return nil, nil
	}
	var requests []validation.Request
	for _, operation := range []validation.Operation{validation.Create, validation.Apply} {
		for _, value := range values {
			requests = append(requests, validation.Request{Operation: operation, Object: value})
		}
	}
	answers, err := validator.Ask(ctx, requests)
	if err != nil {
		return nil, err
	}
	out := make([]Validated, len(values))
	for i := range values {
		create, apply := answers[i], answers[len(values)+i]
		out[i] = Validated{Create: problemsOf(create), Apply: problemsOf(apply), Error: create.Error}
	}
	return out, nil
}

func problemsOf(answer validation.Answer) []ValidatedProblem {
	var out []ValidatedProblem
	for _, p := range answer.Problems {
		out = append(out, ValidatedProblem{Problem: p})
	}
	return out
}

// markInjected marks the problems that are new.
func markInjected(problems, before []ValidatedProblem) {
	for i, p := range problems {
		key := keyOf(p.Problem)
		problems[i].Injected = !slices.ContainsFunc(before, func(b ValidatedProblem) bool { return keyOf(b.Problem) == key })
	}
}

var (
	position = lazyregexp.New(`\[\d+\]`)
	mapValue = lazyregexp.New(`^Invalid value: \{.*\}: `)
)

// keyOf returns a problem without what an injection changes: the positions in lists, and the other entries of a map.
func keyOf(p validation.Problem) validation.Problem {
	p.Field, p.Message = position.ReplaceAllString(p.Field, "[]"), position.ReplaceAllString(p.Message, "[]")
	p.Message = mapValue.ReplaceAllString(p.Message, "Invalid value: {}: ")
	return p
}
