// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/json"

	"github.com/prerig/prerig/pipeline/giturl"
)

// Scope is what the sources of a pipeline may make use of. What is fetched is shared only with those of the same scope.
type Scope struct {
	// Namespace that secrets are read from.
	Namespace string
	// Submodules are the repositories that submodules may lead to, of those that Options.Sources allows; nil sets no further bound.
	Submodules []giturl.Pattern
	// Whose names the pipelines that are bound so, in messages.
	Whose string
}

// Key is equal for equal scopes.
func (s Scope) Key() string {
	key, err := json.Marshal(s)
	if err != nil {
		panic(err) // it is plain data
	}
	return string(key)
}
