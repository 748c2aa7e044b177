// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// TestOnlyBranchesAreTrusted: what a host says to be of the repository, but is no branch of it, has no secrets.
func TestOnlyBranchesAreTrusted(t *testing.T) {
	for name, head := range map[string]string{"no name": "", "a name of none": "ann/topic"} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, ", forks: Refuse")
			b.host.in.Head = head
			b.repository.Git("update-ref", "refs/pull/7/head", b.head)
			b.event()
			if one := b.try(); one == nil || !one.Fork || one.Wanted.IsZero() {
				t.Fatalf("it was taken for one of the repository: %+v", one)
			}
			if one := b.try(); one != nil || b.renders() != 0 || len(b.host.said()) != 0 {
				t.Errorf("it was not left alone: %+v, %d renders, %v", one, b.renders(), b.host.said())
			}
		})
	}
	t.Run("the name of a branch that is elsewhere", func(t *testing.T) {
		b := newBed(t, "")
		b.host.in.Head = "main"
		b.event()
		if one := b.try(); one == nil || one.Tries != 1 || one.Wanted.IsZero() || b.renders() != 0 || len(b.host.said()) != 0 {
			t.Errorf("%+v, %d renders, %v", one, b.renders(), b.host.said())
		}
	})
	t.Run("a branch", func(t *testing.T) {
		b := newBed(t, "")
		b.event()
		one := b.try()
		if one == nil || one.Fork || one.Head != b.head || b.renders() != 1 ||
			!slices.Equal(b.host.said(), []pullrequest.CommitState{pullrequest.CommitPending, pullrequest.CommitSuccess}) {
			t.Errorf("%+v, %d renders, %v", one, b.renders(), b.host.said())
		}
	})
}

// TestEventsInTheMiddle: one that comes between looking and loading is not lost, and those that come while a preview is under way do not
// keep it from ending.
func TestEventsInTheMiddle(t *testing.T) {
	t.Run("before it is loaded", func(t *testing.T) {
		b := newBed(t, "")
		b.event()
		if err := b.Store.Sync(b.Context()); err != nil {
			b.Fatal(err)
		}
		due := b.duePreviews(time.Now())
		if len(due) != 1 {
			b.Fatal(due)
		}
		run, working := b.beginIfRoom(b.Context(), due[0])
		b.event()
		_ = b.Store.Sync(b.Context())
		b.host.asking = func() { b.duePreviews(time.Now()) } // which is when it would be stopped
		done := b.previewPullRequest(working, due[0])
		b.finishRunningPreview(due[0].Key(), run, done)
		if one := b.known(); !done || !one.Wanted.IsZero() || one.Head != b.head || one.Pending != "" {
			b.Errorf("the event is lost, or it is done again for nothing: %+v", one)
		}
	})
	t.Run("while it is under way", func(t *testing.T) {
		b := newBed(t, "")
		stopped := false
		b.whenIdle = func(ctx context.Context) error {
			for range 3 { // as a bot that edits the title
				b.event()
				_ = b.Store.Sync(b.Context())
				b.duePreviews(time.Now())
			}
			stopped = ctx.Err() != nil
			return errCount
		}
		b.event()
		one := b.try()
		if stopped || one.Head != b.head || one.Pending != "" || one.Wanted.IsZero() {
			b.Errorf("stopped: %v; %+v", stopped, one)
		}
		if one = b.try(); !one.Wanted.IsZero() || b.renders() != 1 {
			b.Errorf("the same head was rendered %d times: %+v", b.renders(), one)
		}
	})
}

// TestNothingToBeDone: where another process has the lock, or the store cannot be read, it is not looked again and again.
func TestNothingToBeDone(t *testing.T) {
	b := newBed(t, "")
	b.event()
	if err := b.Store.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
	unlock, ok, err := b.Queue.TryLock(b.Context(), "preview/"+b.one().Key())
	if err != nil || !ok {
		b.Fatal(ok, err)
	}
	now, key := time.Now(), b.one().Key()
	for i, least := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
		run, working := b.beginIfRoom(b.Context(), b.one())
		done := b.previewPullRequest(working, b.one())
		b.finishRunningPreview(key, run, done)
		if took := b.pauses[key].took; done || took != least*time.Second || len(b.duePreviews(time.Now())) != 0 {
			b.Errorf("pause %d is %s", i, took)
		}
	}
	if len(b.duePreviews(now.Add(10*time.Minute))) != 1 {
		b.Error("it is left alone for good")
	}
	b.Store.ChangePreview(b.Context(), key, func(one *status.Preview) *status.Preview { //nolint:errcheck // seen below
		one.NotBefore = time.Now().Add(time.Hour)
		return one
	})
	unlock()
	if b.previewPullRequest(b.Context(), b.one()) || b.host.asked != 0 {
		b.Error("it began before its time")
	}
}

// TestAHostIsNotAskedBeforeTheTimeThatItNames has it name one, and events come meanwhile: after the attempt, and during the next.
func TestAHostIsNotAskedBeforeTheTimeThatItNames(t *testing.T) {
	b := newBed(t, "")
	b.host.statusErr = &pullrequest.Error{Status: http.StatusTooManyRequests, Temporary: true, Wait: time.Hour}
	b.event()
	isLeftAlone := func(when string, one *status.Preview) {
		t.Helper()
		if one.Wanted.IsZero() || one.NotBefore.Before(one.Ended.Add(time.Hour)) {
			t.Errorf("%s: it is asked again at %s, the last try ended at %s", when, one.NotBefore, one.Ended)
		}
	}
	isLeftAlone("after the answer", b.try())
	b.event()
	isLeftAlone("after an event", b.known())
	err := b.Store.ChangePreview(b.Context(), b.one().Key(), func(one *status.Preview) *status.Preview {
		one.NotBefore, one.HostAfter = time.Time{}, time.Time{}
		return one
	})
	if err != nil {
		t.Fatal(err)
	}
	b.host.asking = b.event
	isLeftAlone("with an event meanwhile", b.try())
}

// TestFailuresAreNotFinal: a head that was not seen is previewed with the next event.
func TestFailuresAreNotFinal(t *testing.T) {
	b := newBed(t, "")
	var down atomic.Bool
	b.server.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if down.Load() {
			http.Error(w, "not now", http.StatusForbidden)
		}
		return down.Load()
	})
	atOnce := func() {
		b.Helper()
		err := b.Store.ChangePreview(b.Context(), b.one().Key(), func(one *status.Preview) *status.Preview {
			one.NotBefore = time.Time{}
			return one
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	down.Store(true)
	b.event()
	for range fetchTries {
		if one := b.try(); one.Failed || one.Wanted.IsZero() {
			b.Fatalf("it was told too early: %+v", one)
		}
		atOnce()
	}
	if one := b.try(); !one.Failed || one.Head != "" || one.Pending != "" || !one.Wanted.IsZero() || b.renders() != 0 {
		b.Fatalf("%+v", one)
	}
	down.Store(false)
	b.event()
	one := b.known()
	if !one.NotBefore.After(one.Ended) {
		b.Errorf("events of one that fails are not held back: %+v", one)
	}
	atOnce()
	if one = b.try(); one.Failed || one.Head != b.head {
		b.Errorf("%+v", one)
	}
	want := []pullrequest.CommitState{"Pending", "Pending", "Pending", "Pending", "Failure", "Pending", "Success"}
	if !slices.Equal(b.host.said(), want) {
		b.Error(b.host.said())
	}
}

// TestTellingDespiteRefusals: the status is set where the comment is refused, and what is known of a pull request that was closed is
// dropped where the host takes no last word.
func TestTellingDespiteRefusals(t *testing.T) {
	b := newBed(t, "")
	b.host.keepErr = &pullrequest.Error{Status: 403}
	b.event()
	if one := b.try(); !one.Failed || one.Pending != "" || !slices.Equal(b.host.said(), []pullrequest.CommitState{"Pending", "Success"}) {
		b.Errorf("%+v, %v", one, b.host.said())
	}
	b.host.in.State, b.host.statusErr = pullrequest.StateClosed, &pullrequest.Error{Status: 422}
	b.Store.ChangePreview(b.Context(), b.one().Key(), func(one *status.Preview) *status.Preview { //nolint:errcheck // seen below
		one.Wanted, one.Pending = time.Now(), b.head
		return one
	})
	if one := b.try(); one != nil || b.host.finished != 1 {
		b.Errorf("%+v", one)
	}
	// A pending status that is refused keeps nothing from being told.
	b.host.in.State, b.host.keepErr = pullrequest.StateOpen, nil
	b.event()
	if one := b.try(); one == nil || len(b.host.kept) < 2 {
		b.Errorf("%+v, %q", one, b.host.kept)
	}
}

// TestContextOf: pull requests with one head to several branches do not share a status.
func TestContextOf(t *testing.T) {
	b := newBed(t, "")
	b.event()
	b.try()
	for _, s := range b.host.statuses {
		if s.Context != "prerig/preview/team/main" {
			t.Error(s.Context)
		}
	}
	long := strings.Repeat("x", 250)
	for _, c := range [][3]string{
		{"team", "release/1.2", "prerig/preview/team/release/1.2"}, {"", "main", "prerig/preview/main"},
		{"team", long + "a", contextOf("team", long+"a")},
	} {
		if got := contextOf(c[0], c[1]); got != c[2] || len(got) > maxContext {
			t.Error(got)
		}
	}
	if contextOf("team", long+"a") == contextOf("team", long+"b") {
		t.Error("two long branches share a status")
	}
}

// TestForksMakeWay: one from a fork does not keep those of the repository itself waiting.
func TestForksMakeWay(t *testing.T) {
	b := newBed(t, "")
	fork, own := b.one(), b.one()
	fork.Number, fork.Fork = 8, true
	first, _ := b.beginIfRoom(b.Context(), fork)
	second, _ := b.beginIfRoom(b.Context(), own)
	if first == nil || second == nil {
		t.Fatal("a fork counts for the others")
	}
	b.finishRunningPreview(own.Key(), second, true)
	b.AtOnce = 1
	if run, _ := b.beginIfRoom(b.Context(), own); run != nil {
		t.Fatal("there is no room")
	}
	b.finishRunningPreview(fork.Key(), first, true)
	// The fork that is at it stops, waits, and is not lost.
	b.host.in.Fork = true
	b.event()
	b.try() // says that it is one
	b.whenIdle = func(ctx context.Context) error {
		other := b.one()
		other.Number = 9
		b.beginIfRoom(b.Context(), other)
		<-ctx.Done()
		return ctx.Err()
	}
	b.repository.Git("update-ref", "refs/pull/7/head", b.head)
	_ = b.Store.Sync(b.Context())
	one := b.known()
	run, working := b.beginIfRoom(b.Context(), one)
	b.finishRunningPreview(one.Key(), run, b.previewPullRequest(working, one))
	if one = b.known(); one.Wanted.IsZero() || !one.NotBefore.After(one.Ended) || one.Ended.IsZero() {
		t.Errorf("%+v", one)
	}
}

// TestSweep drops those whose pipelines are gone.
func TestSweep(t *testing.T) {
	b := newBed(t, "")
	gone := &status.Preview{Namespace: "other", Repository: b.repository.URL, Number: 3}
	b.event()
	b.try()
	if err := b.Store.ChangePreview(b.Context(), gone.Key(), func(*status.Preview) *status.Preview { return gone }); err != nil {
		t.Fatal(err)
	}
	_ = b.Store.Sync(b.Context())
	b.recheckOrphanedPreviews(b.Context())
	b.running()
	b.eventually("one to be dropped", func() bool { now, err := b.Store.LoadPreview(b.Context(), gone.Key()); return err == nil && now == nil })
	if !b.isDone() {
		t.Error("another was wanted again")
	}
}

// TestAPreviewIsKnownSinceItsFirstEvent, however many follow.
func TestAPreviewIsKnownSinceItsFirstEvent(t *testing.T) {
	b := newBed(t, "")
	b.event()
	first := b.try()
	b.event()
	if again := b.known(); first.Since.IsZero() || !again.Since.Equal(first.Since) || first.State() != status.PreviewSucceeded || again.State() != status.PreviewWaiting {
		t.Errorf("%+v, then %+v", first, again)
	}
}
