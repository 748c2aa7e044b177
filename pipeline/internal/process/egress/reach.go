// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/prerig/prerig/pipeline/source/giturl"
)

// OutOfReachError is returned for a URL that may not be read on behalf of its users. A retry fails again.
type OutOfReachError struct{ Host, Whose, Setting string }

// Error names who can allow it. It does not include the whole URL, which a redirect may have made.
func (e *OutOfReachError) Error() string {
	return fmt.Sprintf("%s may not read this URL of %s; who runs the daemon can allow it with %s", e.Whose, e.Host,
		e.Setting)
}

// Reach is what may be read on behalf of a user, beside what a pipeline names itself.
type Reach struct {
	// Allowed are the URLs; nil sets no bound.
	Allowed []giturl.Pattern
	// Whose names those whom it binds, Setting what allows more, in messages.
	Whose, Setting string
}

type reachKey struct{}

// WithReach returns a context in which only URLs within a reach are read, and within those of the context that it is
// made of.
func WithReach(ctx context.Context, r Reach) context.Context {
	if r.Allowed == nil {
		return ctx
	}
	all, _ := ctx.Value(reachKey{}).([]Reach)
	return context.WithValue(ctx, reachKey{}, append(all[:len(all):len(all)], r))
}

// CheckURL returns an *[OutOfReachError] for a URL that must not be read in a context: the target of a redirect, or
// a URL that a source names. The query after the question mark is ignored.
func CheckURL(ctx context.Context, at *url.URL) error {
	all, _ := ctx.Value(reachKey{}).([]Reach)
	for _, r := range all {
		if !giturl.Allows(r.Allowed, at.Scheme+"://"+at.Host+at.EscapedPath()) {
			return &OutOfReachError{at.Host, r.Whose, r.Setting}
		}
	}
	return nil
}

// isOutOfReach reports whether an error is about a URL that must not be read.
func isOutOfReach(err error) bool {
	var out *OutOfReachError
	var not *NotPermittedError
	return errors.As(err, &out) || errors.As(err, &not)
}
