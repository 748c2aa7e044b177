// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package backoff computes how long to wait before a retry, and waits.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Delay returns how long to wait after so many failures in a row, counted from 1: first, doubled with each failure up
// to longest, and of that at random between half and the whole, so that those who failed together do not come back
// together.
func Delay(first, longest time.Duration, failures int) time.Duration {
	wait := first
	for ; failures > 1 && wait < longest; failures-- {
		wait *= 2
	}
	wait = min(wait, longest)
	return wait/2 + rand.N(wait/2+1)
}

// Wait returns when the time is over, or the cause of ctx's end where that comes first.
func Wait(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
