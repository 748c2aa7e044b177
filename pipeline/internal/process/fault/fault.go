// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package fault makes an error of a panic, so that odd input stops no pipeline but its own.
package fault

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Error is a panic that was recovered from.
type Error struct {
	// Cause is what was panicked with.
	Cause any
	// Stack is where.
	Stack []byte
}

// Recovered returns the error for what recover has returned. It is to be called by the deferred function that recovers.
func Recovered(cause any) *Error { return &Error{cause, debug.Stack()} }

// StackOf returns the stack of the panic that an error is about, or false for any other error.
func StackOf(err error) (stack string, ok bool) {
	var bug *Error
	if !errors.As(err, &bug) {
		return "", false
	}
	return string(bug.Stack), true
}

// Error asks for a report, with the cause.
func (e *Error) Error() string {
	return fmt.Sprintf("this is a bug in Prerig, please report it: %v", e.Cause)
}
