// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
)

var execLocation = lazyregexp.New(`^template: (.*?):(\d+):\d+: executing "(?s:.*?)" at <(?s:(.*?))>: (?s:(.*))$`)

// Error is what went wrong when a template was rendered.
type Error struct {
	// Template is its name and Line where in it, from 1; 0 if not known.
	Template string
	Line     int
	// At is the expression.
	At  string
	Err error
}

// Error names the template and the line.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rendering template %q", e.Template)
	if e.Line > 0 {
		fmt.Fprintf(&b, ", line %d", e.Line)
	}
	if e.At != "" {
		fmt.Fprintf(&b, ", at {{%s}}", strings.TrimSuffix(strings.TrimPrefix(e.At, "{{"), "}}"))
	}
	return b.String() + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ExecuteError returns the error of text/template for a rendered template, with the position parsed from the text:
// the template with that line may be one that another calls.
func ExecuteError(name string, err error) error {
	var placed *Error
	if errors.As(err, &placed) {
		return placed
	}
	m := execLocation.FindStringSubmatch(err.Error())
	if m == nil {
		return &Error{Template: name, Err: err}
	}
	line, _ := strconv.Atoi(m[2])
	cause := strings.TrimPrefix(m[4], "error calling ")
	return &Error{Template: m[1], Line: line, At: m[3], Err: errors.New(cause)}
}
