// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"

	"github.com/prerig/prerig/pipeline/source/giturl"
)

// RemotePatterns returns the repositories that pipelines may allow as remote bases, or none if unbounded.
func (c *Config) RemotePatterns() ([]giturl.Pattern, error) {
	var out []giturl.Pattern
	var errs []error
	for i, text := range c.RemoteBases {
		pattern, err := giturl.ParsePattern(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("configuration remote_bases[%d]: %w", i, err))
		}
		out = append(out, pattern)
	}
	return out, errors.Join(errs...)
}
