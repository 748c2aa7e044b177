// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// Scope is what the sources of a pipeline may make use of. What is fetched is shared only with those of the same scope.
type Scope struct {
	// Namespace that secrets are read from.
	Namespace string
	// Submodules are the repositories that submodules may lead to, of those that Options.Sources allows; nil sets no
	// further bound.
	Submodules []giturl.Pattern
	// Whose names the pipelines that are bound so, in messages.
	Whose string
}

// Bind returns a context for what is read on behalf of pipelines of the scope: it counts for their namespace, and only
// what they may read is read.
func (s Scope) Bind(ctx context.Context) context.Context {
	ctx = budget.WithTeam(ctx, s.Team())
	return egress.WithReach(ctx, egress.Reach{Allowed: s.Submodules, Whose: s.Whose, Setting: "the tenant's sources"})
}

// Team is who shares what is bounded for all: a tenant, or a namespace of none.
func (s Scope) Team() string { return cmp.Or(s.Whose, s.Namespace) }

// Key is equal for equal scopes.
func (s Scope) Key() string {
	key, err := json.Marshal(s)
	if err != nil {
		panic(err) // it is plain data
	}
	return string(key)
}
