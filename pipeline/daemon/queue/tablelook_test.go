// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/prerig/prerig/pipeline/internal/statetest"
)

// countedLooks counts how often it is asked how far the state is, and for how long each may take.
type countedLooks struct {
	jetstream.Stream
	looks    atomic.Int64
	shortest atomic.Int64 // nanoseconds that one was to be waited for
}

func (c *countedLooks) Info(ctx context.Context, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	c.looks.Add(1)
	if deadline, ok := ctx.Deadline(); ok {
		c.shortest.Store(int64(time.Until(deadline)))
	}
	return c.Stream.Info(ctx, opts...)
}

// TestALookIsSharedByThoseWhoComeBeforeIt, and nobody is told what was asked before he came.
func TestALookIsSharedByThoseWhoComeBeforeIt(t *testing.T) {
	q := opened(t, statetest.Dir(t))
	defer q.Close()
	table, err := q.Table(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counted := &countedLooks{Stream: q.stateStream}
	q.stateStream = counted
	table.looking.Lock() // as while somebody asks
	synced := make(chan error, 100)
	for range cap(synced) {
		go func() { synced <- table.Sync(t.Context()) }()
	}
	joined := 0
	for deadline := time.Now().Add(3 * time.Minute); joined < cap(synced); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			table.looking.Unlock()
			t.Fatalf("%d of %d share the look", joined, cap(synced))
		}
		table.lookMu.Lock()
		if table.next != nil {
			joined = table.next.many
		}
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
	if n := counted.looks.Load(); n != 1 {
		t.Errorf("%d looks for all, want one", n)
	}
	// An embedded server answers at last, and is waited for longer than one of a cluster.
	if got := time.Duration(counted.shortest.Load()); got <= lookFor {
		t.Errorf("the look was waited for %s", got)
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
