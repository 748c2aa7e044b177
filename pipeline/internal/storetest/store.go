// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package storetest opens what tests of the daemon's parts store their states in.
package storetest

import (
	"testing"

	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// Open returns an empty queue with an embedded server, which is closed at the end of the test, and the store on it.
func Open(t testing.TB) (*queue.Queue, *status.Store) {
	t.Helper()
	q, err := queue.Open(t.Context(), queue.Options{Dir: statetest.Dir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	store, err := status.NewStore(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return q, store
}
