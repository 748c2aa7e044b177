// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// maxKeptRefs and maxKeptNames bound how many references of a remote are kept in memory, and the bytes of their names.
const (
	maxKeptRefs  = 5000
	maxKeptNames = 512 << 10
)

// isLong reports whether a list needs more memory than may be kept.
func (r Refs) isLong() bool {
	if len(r.ByName) > maxKeptRefs {
		return true
	}
	size := 0
	for name := range r.ByName {
		size += len(name)
	}
	return size > maxKeptNames
}

// sharedListing keeps the last list of a remote's references, for all who want one that is not older than a moment.
type sharedListing struct {
	turn chan struct{} // holds one token for the goroutine that asks the server

	mu    *sync.Mutex
	refs  Refs
	asked time.Time // zero if no list is kept
}

func newSharedListing() sharedListing {
	return sharedListing{turn: make(chan struct{}, 1), mu: &sync.Mutex{}}
}

// keepNewestRefs keeps a list that the server was asked for at a time, unless a newer one is kept or it is very long.
func (l *sharedListing) keepNewestRefs(refs Refs, asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if asked.Before(l.asked) {
		return
	}
	l.refs, l.asked = refs, asked
	if refs.isLong() {
		l.refs, l.asked = Refs{}, time.Time{}
	}
}

func (l *sharedListing) refsListedSince(at time.Time) (Refs, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refs, !l.asked.IsZero() && !l.asked.Before(at)
}

// ListSince returns the references as the server has listed them at some time since at: for a fetch, for another
// list, or for this call. The caller must not change them.
func (r *Remote) ListSince(ctx context.Context, at time.Time) (Refs, error) {
	select {
	case r.listings.turn <- struct{}{}:
		defer func() { <-r.listings.turn }()
	case <-ctx.Done():
		return Refs{}, fmt.Errorf("waiting for the references of %s: %w", r.url, ctx.Err())
	}
	if refs, ok := r.listings.refsListedSince(at); ok {
		return refs, nil
	}
	return r.List(ctx)
}
