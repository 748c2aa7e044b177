// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// until returns a render that ends when ctx does.
func until(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func quickly(context.Context) error { return nil }

// TestQuickRendersDoNotWaitForSlowOnes has more renders that never end than there are places, and others beside them.
func TestQuickRendersDoNotWaitForSlowOnes(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			l := newLanes(workers, false)
			l.after = 20 * time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			var hanging sync.WaitGroup
			var starts atomic.Int64
			const bad = 12
			for i := range bad {
				hanging.Go(func() {
					err := l.runInLane(ctx, work{pipeline: fmt.Sprint("bad", i)}, func(ctx context.Context) error {
						starts.Add(1)
						return until(ctx)
					})
					if !errors.Is(err, context.Canceled) {
						t.Errorf("a render that hangs ended with %v", err)
					}
				})
			}
			for starts.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			for i := range 20 {
				if err := l.runInLane(t.Context(), work{pipeline: fmt.Sprint("good", i)}, quickly); err != nil {
					t.Fatal(err)
				}
			}
			cancel()
			hanging.Wait()
			for _, p := range []*places{l.quick, l.slow} {
				if p.taken != 0 || len(p.held) != 0 || len(p.waiters) != 0 {
					t.Errorf("places are lost: %d taken, held %v, %d waiting", p.taken, p.held, len(p.waiters))
				}
			}
		})
	}
}

func TestSlowRendersComeToAnEnd(t *testing.T) {
	l := newLanes(1, false)
	l.after = 10 * time.Millisecond
	var all sync.WaitGroup
	var done, quick atomic.Int64
	for i := range 4 {
		all.Go(func() {
			for range 3 {
				err := l.runInLane(t.Context(), work{pipeline: fmt.Sprint("slow", i)}, func(ctx context.Context) error {
					select {
					case <-time.After(3 * l.after):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				if err != nil {
					t.Error(err)
				}
				done.Add(1)
			}
		})
	}
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for i := range 2 {
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := l.runInLane(t.Context(), work{pipeline: fmt.Sprint("quick", i)}, quickly); err != nil {
					t.Error(err)
				}
				quick.Add(1)
				time.Sleep(time.Millisecond)
			}
		})
	}
	all.Wait()
	close(stop)
	busy.Wait()
	if done.Load() != 12 || quick.Load() == 0 {
		t.Errorf("%d slow renders and %d quick ones came to an end", done.Load(), quick.Load())
	}
	if !l.isSlow("slow1") || l.isSlow("quick1") {
		t.Errorf("what is known to be slow: %v", l.known)
	}
	// One that has become quick is so again, and what fails of itself is told as it is.
	broken := errors.New("broken")
	if err := l.runInLane(t.Context(), work{pipeline: "slow1"}, func(context.Context) error { return broken }); !errors.Is(err, broken) || l.isSlow("slow1") {
		t.Errorf("got %v; slow: %v", err, l.known)
	}
}
