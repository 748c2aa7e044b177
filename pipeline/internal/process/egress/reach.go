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

// OutOfReachError is about a URL that those for whom something is read may not read. Trying again changes nothing.
type OutOfReachError struct{ Host, Whose, Setting string }

// Error says who can allow it. It does not say the whole URL, which a redirect may have made.
func (e *OutOfReachError) Error() string {
	return fmt.Sprintf("%s may not read this URL of %s; who runs the daemon can allow it with %s", e.Whose, e.Host, e.Setting)
}

// Reach is what may be read on behalf of somebody, beside what a pipeline names itself.
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

// CheckURL returns an *[OutOfReachError] for a URL that must not be read in a context: one that a redirect leads to,
// or that a source names. What is asked for there, behind a question mark, does not matter.
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
	return errors.As(err, &out)
}
