// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// sortProblems sorts the problems and removes duplicates.
func sortProblems(problems []Problem) []Problem {
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Type, b.Type),
			strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(problems)
}

// problemsOf reads the API server's answer. The error is one that is not about the object.
func problemsOf(err error) ([]Problem, error) {
	if err == nil {
		return nil, nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Reason == metav1.StatusReasonInternalError {
		return nil, err
	}
	answer := status.Status()
	if answer.Details == nil || len(answer.Details.Causes) == 0 {
		return []Problem{{Type: string(answer.Reason), Message: answer.Message}}, nil
	}
	var out []Problem
	for _, cause := range answer.Details.Causes {
		out = append(out, Problem{Field: cause.Field, Type: string(cause.Type), Message: cause.Message})
	}
	return out, nil
}

func problemsOfList(errs field.ErrorList) []Problem {
	var out []Problem
	for _, err := range errs {
		out = append(out, Problem{Field: err.Field, Type: string(err.Type), Message: err.ErrorBody()})
	}
	return out
}

// immutableWords are what messages about fields that cannot change have in common: Kubernetes has no type of its own
// for them.
var immutableWords = []string{"immutable", "updates to ", "may not change", "cannot be changed", "may not be changed",
	"cannot change", "can not be changed", "may not add or remove"}

// markImmutable sets the type of problems about fields that cannot change.
func markImmutable(problems []Problem) {
	for i, p := range problems {
		if slices.ContainsFunc(immutableWords, func(words string) bool { return strings.Contains(p.Message, words) }) {
			problems[i].Type = TypeImmutable
		}
	}
}
