// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// report collects the findings of a check.
type report struct {
	severities gate.Severities
	results    result.Results
}

// addFieldFinding adds a finding about a field of the object, unless its rule is off.
func (r *report) addFieldFinding(o gate.Object, code string, path []any, message string) {
	if severity := r.severities.Of(code); severity != "" {
		r.addAs(o, code, severity, path, message)
	}
}

// addAtMost adds a finding with at most the severity most.
func (r *report) addAtMost(o gate.Object, code string, most result.Severity, path []any, message string) {
	severity := r.severities.Of(code)
	switch {
	case severity == "":
	case severity == result.Error, severity == result.Warning && most == result.Info:
		r.addAs(o, code, most, path, message)
	default:
		r.addAs(o, code, severity, path, message)
	}
}

// limitSeverity makes the findings from an index on at most as severe as most.
func (r *report) limitSeverity(first int, most result.Severity) {
	for i := first; i < len(r.results); i++ {
		if r.results[i].Severity == result.Error {
			r.results[i].Severity = most
		}
	}
}

// addAs adds a finding of a severity.
func (r *report) addAs(o gate.Object, code string, severity result.Severity, path []any, message string) {
	ref := namedRef(o)
	one := result.Result{Severity: severity, Message: message, ResourceRef: &ref, Tags: map[string]string{result.TagCode: code}}
	if len(path) > 0 {
		one.Field = &result.Field{Path: workload.FieldString(path)}
	}
	one.File = o.Place(path)
	r.results = append(r.results, one)
}

// addErrors adds what the API server's own code has found, but not that a field is missing which the schema asks for too.
func (r *report) addErrors(o gate.Object, code string, errs field.ErrorList) {
	for _, err := range errs {
		path := fieldPath(err.Field, o.Value)
		if err.Type == field.ErrorTypeRequired && r.isReported(o, path) {
			continue
		}
		r.addFieldFinding(o, code, path, errorMessage(o, err))
	}
}

// isReported reports whether a finding already covers the object's missing field.
func (r *report) isReported(o gate.Object, path []any) bool {
	name := workload.FieldString(path)
	return slices.ContainsFunc(r.results, func(one result.Result) bool {
		return one.Tags[result.TagCode] == gate.CodeRequired && one.Field != nil && one.Field.Path == name &&
			*one.ResourceRef == namedRef(o) &&
			(o.File == nil || one.File != nil && one.File.Path == o.File.Path && one.File.Index == o.File.Index)
	})
}
