// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package strict

import "errors"

// FieldError is an error about the value at a path, below the object that its reader has. A caller that knows where
// the object is adds its own path, and the line.
type FieldError struct {
	Path []any
	// Line counts in the field, from 1, where it is a text of several lines; 0 is the field itself.
	Line int
	Err  error
}

// AtField returns the error with the path of the value that it is about; nil for nil.
func AtField(err error, path ...any) error {
	if err == nil {
		return nil
	}
	return &FieldError{Path: path, Err: err}
}

func (e *FieldError) Error() string { return e.Err.Error() }
func (e *FieldError) Unwrap() error { return e.Err }

// FieldOf returns the path of the value that an error is about, and the line in it; nil where the error does not have
// them.
func FieldOf(err error) (path []any, line int) {
	var at *FieldError
	if errors.As(err, &at) {
		return at.Path, at.Line
	}
	return nil, 0
}

// Below is the error with a path above that of the value.
func Below(err error, above ...any) error {
	path, line := FieldOf(err)
	return &FieldError{Path: append(above, path...), Line: line, Err: err}
}

// FieldPath is a path for people: spec.webhooks[0].name.
func FieldPath(path ...any) string { return Problem{Path: path}.Field() }
