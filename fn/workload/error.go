// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
)

// FieldError names the field of an object that is malformed.
type FieldError struct {
	// Field is the path in the object, such as spec.template.metadata.labels.
	Field string
	// Err is what is wrong with it.
	Err error
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }

// ElsewhereError reports that an object has no pod template of its own because it names another object that has it,
// as an Argo Rollout with spec.workloadRef does. The other object is injected by itself.
type ElsewhereError struct {
	// Field is what names the other object, such as spec.workloadRef.
	Field string
	// APIVersion, Kind and Name identify the other object, as far as they are known. It is in the same namespace.
	APIVersion, Kind, Name string
}

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("the pod template is in %s %s (%s)", e.Kind, e.Name, e.Field)
}

var errMissing = errors.New("is missing")

func wrongType(at []any, v any, want string) error {
	return &FieldError{Field: FieldString(at), Err: fmt.Errorf("is %s, not %s", typeName(v), want)}
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int, int64, float64:
		return "a number"
	}
	return fmt.Sprintf("a %T", v)
}
