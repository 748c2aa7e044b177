// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/build/cache"
)

// openBuildCache returns the build cache, or nil if builds are not cached.
func (p *components) openBuildCache() *build.Cache {
	size, err := p.c.BuildCacheSize()
	if err != nil || size == 0 || p.c.Workers == 0 {
		return nil // the configuration was checked
	}
	store := cache.Open(cache.Options{Dir: p.c.BuildCacheDir(), MaxBytes: size, Log: p.o.Log})
	return &build.Cache{Store: store, Check: p.c.BuildCache.Check, Observe: p.metrics.Remembered}
}
