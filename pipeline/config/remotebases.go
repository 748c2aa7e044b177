// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"

	"github.com/prerig/prerig/pipeline/remotebase"
)

// RemotePatterns gives the repositories that pipelines may allow as remote bases, none where there is no bound.
func (c *Config) RemotePatterns() ([]remotebase.Pattern, error) {
	var out []remotebase.Pattern
	var errs []error
	for i, text := range c.RemoteBases {
		pattern, err := remotebase.ParsePattern(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("configuration remote_bases[%d]: %w", i, err))
		}
		out = append(out, pattern)
	}
	return out, errors.Join(errs...)
}
