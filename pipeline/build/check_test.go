// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// TestChecksTakeThePlacesOfRenders: a check has a renderer and a validation of its own, each with the memory of a render, and a
// thousand results may be checked at once.
func TestChecksTakeThePlacesOfRenders(t *testing.T) {
	const workers = 2
	l := Limit(nil, workers, Teams{}, slog.New(slog.DiscardHandler))
	var at, most atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			err := l.Check(t.Context(), &v1alpha1.RenderPipeline{}, func(context.Context) error {
				now := at.Add(1)
				defer at.Add(-1)
				for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
				}
				time.Sleep(5 * time.Millisecond)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := most.Load(); got > workers+1 {
		t.Errorf("%d checks ran at once, with %d places for renders", got, workers)
	}
}
