// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestATeamThatTakesAllLeavesRoomForOthers has one team ask for everything, again and again, and never give any back.
func TestATeamThatTakesAllLeavesRoomForOthers(t *testing.T) {
	b := New(100, 60, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	var greedy sync.WaitGroup
	for range 50 {
		greedy.Go(func() {
			if err := b.Lease("greedy").Grow(ctx, 20); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	for range 100 {
		l := b.Lease("honest")
		if err := l.Grow(t.Context(), 40); err != nil {
			t.Fatal(err)
		}
		l.Release()
	}
	cancel()
	greedy.Wait()
	if held := b.held["greedy"]; held > 60 {
		t.Errorf("one team holds %d of 100, and its share is 60", held)
	}
}

// TestTheSumIsBounded: however many ask at once, and whatever sizes they ask for.
func TestTheSumIsBounded(t *testing.T) {
	b := New(100, 100, time.Hour)
	var held, most atomic.Int64
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			l := b.Lease(string(rune('a' + i%7)))
			want := int64(1 + i%40)
			if err := l.Grow(t.Context(), want); err != nil {
				t.Error(err)
				return
			}
			now := held.Add(want)
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
			held.Add(-want)
			l.Release()
		})
	}
	all.Wait()
	if most.Load() > 100 {
		t.Errorf("%d of 100 were held", most.Load())
	}
	if b.free != 100 || len(b.held) != 0 || len(b.waiting) != 0 {
		t.Errorf("%d are free, %v held, %d wait", b.free, b.held, len(b.waiting))
	}
}

// TestWaitingEnds: leases that grow while others wait for them do not keep each other for ever, and those who give up
// leave nothing behind.
func TestWaitingEnds(t *testing.T) {
	b := New(100, 100, 20*time.Millisecond)
	one, two := b.Lease("one"), b.Lease("two")
	for _, l := range []*Lease{one, two} {
		if err := l.Grow(t.Context(), 50); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range []*Lease{one, two} {
		if err := l.Grow(t.Context(), 60); !errors.Is(err, ErrBusy) {
			t.Errorf("got %v", err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Lease("three").Grow(over, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	one.Release()
	if err := two.Grow(t.Context(), 1000); err != nil {
		t.Error(err)
	}
	two.Release()
	if b.free != 100 || len(b.waiting) != 0 {
		t.Errorf("%d are free, %d wait", b.free, len(b.waiting))
	}
}

// TestReadAllHoldsWhatHasCome: not what was announced, and no more than it may.
func TestReadAllHoldsWhatHasCome(t *testing.T) {
	b := New(100<<20, 100<<20, time.Hour)
	for _, size := range []int{0, 1, FreeBytes - 1, FreeBytes, FreeBytes + 1, 3 << 20} {
		l := b.Lease("team")
		content, err := ReadAll(t.Context(), l, bytes.NewReader(make([]byte, size)), 4<<20)
		if err != nil || len(content) != size {
			t.Errorf("%d bytes: got %d, %v", size, len(content), err)
		}
		if size < FreeBytes && l.held != 0 || l.held > int64(6*size+FreeBytes) {
			t.Errorf("%d bytes: %d are held", size, l.held)
		}
		l.Release()
	}
	l := b.Lease("team")
	content, err := ReadAll(t.Context(), l, endless{}, 1<<20)
	if err != nil || len(content) != 1<<20+1 {
		t.Errorf("an endless answer: got %d bytes, %v", len(content), err)
	}
	l.Release()
	broken := errors.New("broken")
	if _, err := ReadAll(t.Context(), l, io.MultiReader(bytes.NewReader(make([]byte, 10)), failing{broken}), 1<<20); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
