// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "path/filepath"

// BuildCache is about builds that are remembered, so that a change of a policy need not build again.
type BuildCache struct {
	// Size bounds them together, as a quantity such as 256Mi; 0 remembers none.
	Size string `mapstructure:"size"`
	// Check repeats every build nevertheless, and fails if its result differs.
	Check bool `mapstructure:"check"`
}

// BuildCacheSize returns the bound in bytes, 0 where none is remembered.
func (c *Config) BuildCacheSize() (int64, error) {
	if c.BuildCache.Size == "0" {
		return 0, nil
	}
	return parseQuantity("build_cache.size", c.BuildCache.Size)
}

// BuildCacheDir is the directory that they are kept in.
func (c *Config) BuildCacheDir() string { return filepath.Join(c.State, "builds") }
