// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// TestALookIsSharedByThoseWhoComeBeforeIt, and nobody is told what was asked before he came.
func TestALookIsSharedByThoseWhoComeBeforeIt(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	table, err := q.Table(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table.looking.Lock() // as while somebody asks
	synced := make(chan error, 100)
	for range cap(synced) {
		go func() { synced <- table.Sync(t.Context()) }()
	}
	var first *stateLook
	for deadline := time.Now().Add(3 * time.Minute); first == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody asks")
		}
		table.lookMu.Lock()
		first = table.next
		table.lookMu.Unlock()
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := table.Sync(gone); err == nil {
		t.Error("one who is gone waits")
	}
	table.looking.Unlock()
	for range cap(synced) {
		if err := <-synced; err != nil {
			t.Error(err)
		}
	}
	// Whatever was saved before the call is there after it, whoever asks meanwhile.
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			name := fmt.Sprint("pipeline/", n)
			for i := range 40 {
				want := fmt.Sprint(i)
				if err := q.Save(t.Context(), name, []byte(want)); err != nil {
					t.Error(err)
					return
				}
				if err := table.Sync(t.Context()); err != nil {
					t.Error(err)
				}
				if got, _, _ := table.Get(name); string(got) != want {
					t.Errorf("%s: got %s, want %s", name, got, want)
				}
			}
		})
	}
	all.Wait()
}
