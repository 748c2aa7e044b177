// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
)

// TestHeadsDoNotFillTheDisk previews one head after the other, where no more than one of them has room.
func TestHeadsDoNotFillTheDisk(t *testing.T) {
	b := newBed(t, "")
	b.MaxKept = 1
	b.running()
	for range 2 {
		b.event()
		b.eventually("a preview and room after it", func() bool { return b.isDone() && b.Heads.Size() <= b.MaxKept })
		b.repository.InWork("commit", "-q", "--allow-empty", "-m", "more")
		b.repository.InWork("push", "-q", "origin", "topic")
		b.host.mu.Lock()
		b.host.in.HeadCommit = b.repository.Git("rev-parse", "topic")
		b.host.mu.Unlock()
	}
	if states := b.host.said(); len(states) < 2 || b.renders() < 1 {
		t.Errorf("%v, %d renders", states, b.renders())
	}
}

// TestNothingBeginsWhereTooMuchIsKept, and nothing is removed that a preview may read.
func TestNothingBeginsWhereTooMuchIsKept(t *testing.T) {
	b := newBed(t, "")
	b.event()
	if one := b.try(); one == nil || one.Head != b.head || b.Heads.Size() == 0 {
		t.Fatalf("%+v, %d bytes", one, b.Heads.Size())
	}
	kept := b.Heads.Size()
	b.MaxKept = kept - 1
	run, _ := b.beginIfRoom(t.Context(), b.one())
	b.makeRoom(t.Context())
	if again, _ := b.beginIfRoom(t.Context(), b.one()); again != nil || b.Heads.Size() != kept {
		t.Errorf("another one begins, or what is read is gone: %d of %d bytes", b.Heads.Size(), kept)
	}
	b.finishRunningPreview(b.one().Key(), run, true)
	b.makeRoom(t.Context())
	if b.Heads.Size() > b.MaxKept {
		t.Errorf("%d bytes are kept", b.Heads.Size())
	}
	if again, _ := b.beginIfRoom(t.Context(), b.one()); again == nil {
		t.Error("none begins any more")
	}
}

// TestWhatIsFetchedWhileItIsLookedIsLookedAtNext has a preview end after it was looked how much is kept, and before that is noted.
func TestWhatIsFetchedWhileItIsLookedIsLookedAtNext(t *testing.T) {
	b := newBed(t, "")
	b.event()
	run, _ := b.beginIfRoom(t.Context(), b.one())
	if run == nil || !b.consumeGrowthFlag() || b.consumeGrowthFlag() {
		t.Fatal("it is not looked once at the start")
	}
	b.finishRunningPreview(b.one().Key(), run, true)
	if b.recordStorageFull(false) || !b.consumeGrowthFlag() {
		t.Error("it is not looked again")
	}
	if b.recordStorageFull(false); b.consumeGrowthFlag() {
		t.Error("it is looked again for nothing")
	}
	if b.recordStorageFull(true); !b.consumeGrowthFlag() {
		t.Error("it is not looked again, although too much is kept")
	}
}

// TestForksMakeRoomForOthers has as many pull requests of forks be known as may be, and one of the repository itself
// come. Nobody makes room where none is of a fork.
func TestForksMakeRoomForOthers(t *testing.T) {
	b := newBed(t, "")
	store := func(number int64, fork bool) {
		t.Helper()
		one := &status.Preview{Namespace: "team", Repository: b.repository.URL, Number: number, Fork: fork, Ended: time.Unix(number, 0)}
		if err := b.Store.ChangePreview(t.Context(), one.Key(), func(*status.Preview) *status.Preview { return one }); err != nil {
			t.Fatal(err)
		}
	}
	const forks = 3
	for number := range int64(maxKept) {
		store(1000+number, number < forks)
	}
	if err := b.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for number := range int64(forks + 1) {
		fresh := &status.Preview{Namespace: "team", Repository: b.repository.URL, Number: 1 + number, Wanted: time.Now(), Since: time.Now(), Cause: "test"}
		if err := b.schedulePreview(t.Context(), fresh); err != nil {
			t.Fatal(err)
		}
		if err := b.Store.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if known := b.Store.Preview(fresh.Key()) != nil; known != (number < forks) {
			t.Errorf("pull request %d is known: %t", fresh.Number, known)
		}
		oldest := status.Preview{Namespace: "team", Repository: b.repository.URL, Number: 1000 + number}
		if kept := b.Store.Preview(oldest.Key()) != nil; kept != (number >= forks) {
			t.Errorf("that of the fork with the number %d is kept: %t", oldest.Number, kept)
		}
	}
}
