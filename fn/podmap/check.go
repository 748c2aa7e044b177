// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"errors"
	"fmt"

	"github.com/prerig/prerig/fn/foreign"
)

// checkStrings makes sure that a value is a map of strings. Null is the empty string, as the API server reads it.
func checkStrings(field string, v any) error {
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		return &FieldError{Field: field, Err: errNotMap}
	}
	for k, e := range m {
		if _, ok := e.(string); !ok && e != nil {
			return &FieldError{Field: fmt.Sprintf("%s[%s]", field, k),
				Err: fmt.Errorf("it has to be a string and is %s; put it in quotes", Describe(e))}
		}
	}
	return nil
}

func checkMaps(field string, v any) error {
	list, ok := v.([]any)
	if !ok && v != nil {
		return &FieldError{Field: field, Err: errors.New("it has to be a list")}
	}
	for i, e := range list {
		if _, ok := e.(map[string]any); !ok {
			return &FieldError{Field: fmt.Sprintf("%s[%d]", field, i), Err: errNotMap}
		}
	}
	return nil
}

// Describe returns what a decoded value is, for messages.
func Describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprintf("the bool %t", v)
	case int64, float64, int:
		return fmt.Sprintf("the number %v", v)
	case string:
		return "the string " + foreign.Quote(v)
	case []any:
		return "a list"
	default:
		return "a map"
	}
}

// errNotMap is for values that have to be maps.
var errNotMap = errors.New("it has to be a map")

// FieldError is an error about a field of the pod.
type FieldError struct {
	// Field is the field's path in the pod, such as spec.containers[0].resources.
	Field string
	Err   error
}

// Error is the field and the cause.
func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }
