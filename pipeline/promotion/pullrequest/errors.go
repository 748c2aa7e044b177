// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Error is about a call that a host refused or did not answer. It never contains a credential.
type Error struct {
	// Server is the name of the host, Repository that of the repository on it.
	Server, Repository string
	// Doing describes the request, such as "finding pull requests from a to b".
	Doing string
	// Status is the HTTP status, 0 without an answer.
	Status int
	// Message is the host's own, shortened.
	Message string
	// Temporary reports whether the same call may succeed later.
	Temporary bool
	// Wait is how long the host wants to be left alone, or 0 if unspecified.
	Wait time.Duration
	// Err is the cause if no usable answer arrived.
	Err error
}

// Error describes the host, the request, the answer, and if helpful, what to do.
func (e *Error) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s of %s at %s: ", e.Doing, e.Repository, e.Server)
	switch {
	case e.Err != nil:
		s.WriteString(e.Err.Error())
	case e.Message != "":
		fmt.Fprintf(&s, "%d %s: %s", e.Status, http.StatusText(e.Status), e.Message)
	default:
		fmt.Fprintf(&s, "%d %s", e.Status, http.StatusText(e.Status))
	}
	switch {
	case e.Wait > 0:
		fmt.Fprintf(&s, "; it wants to be asked again in %s", e.Wait.Round(time.Second))
	case e.Status == http.StatusUnauthorized:
		s.WriteString("; the credential is wrong or has expired")
	case e.Status == http.StatusForbidden && !e.Temporary:
		s.WriteString("; the credential may lack a permission, see docs/pull-requests.md")
	case e.Status == http.StatusNotFound:
		s.WriteString("; hosts also say so where the credential may not see the repository")
	}
	return s.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retry reports whether a failed call may succeed later, and how long the host wants to be left alone before, or 0
// if unspecified.
func Retry(err error) (wait time.Duration, ok bool) {
	if e := (*Error)(nil); errors.As(err, &e) && e.Temporary {
		return e.Wait, true
	}
	return 0, false
}

// IsNotFound reports whether the host knows no such thing, or does not show it to the credential.
func IsNotFound(err error) bool {
	e := (*Error)(nil)
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}
