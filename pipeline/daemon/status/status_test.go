// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/internal/statetest"
	"github.com/prerig/prerig/pipeline/source/tree"
)

func store(t *testing.T) *Store {
	t.Helper()
	q, err := queue.Open(t.Context(), queue.Options{Dir: statetest.Dir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	s, err := NewStore(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStateIsSavedOnceForEachLoad(t *testing.T) {
	s := store(t)
	ctx := t.Context()
	state, revision, err := s.Load(ctx, "team/a")
	if err != nil {
		t.Fatal(err)
	}
	state.Fingerprint = "f"
	state.Seen.Record = tree.Record{{Op: tree.OpRead, Path: "a", Outcome: "b"}}
	if _, err := s.Save(ctx, "team/a", state, revision); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(ctx, "team/a", state, revision); !errors.Is(err, queue.ErrChanged) {
		t.Errorf("a worker that lost its lock saved its state: %v", err)
	}
	if err := s.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(state, s.Get("team/a")); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsTooLargeIsLeftOut(t *testing.T) {
	s := store(t)
	ctx := t.Context()
	large := func() tree.Record {
		var record tree.Record
		for i := range 15_000 {
			random := make([]byte, 40)
			_, _ = rand.Read(random)
			record = append(record, tree.Access{Op: tree.OpRead, Path: fmt.Sprint(i), Outcome: hex.EncodeToString(random)})
		}
		return record
	}
	state := &State{Fingerprint: "f", Seen: Seen{Record: large(), Targets: map[string]tree.Record{"t": large()}}}
	if _, err := s.Save(ctx, "a", state, 0); err != nil {
		t.Fatal(err)
	}
	got, revision, err := s.Load(ctx, "a")
	if err != nil || got.Fingerprint != "f" || len(got.Seen.Targets) != 0 || len(got.Seen.Record) == 0 {
		t.Errorf("record of %d, %d targets, %v", len(got.Seen.Record), len(got.Seen.Targets), err)
	}
	state.Seen.Record = append(large(), large()...)
	if _, err := s.Save(ctx, "a", state, revision); err != nil {
		t.Fatal(err)
	}
	if got, _, err = s.Load(ctx, "a"); err != nil || len(got.Seen.Record) != 0 {
		t.Errorf("record of %d, %v", len(got.Seen.Record), err)
	}
	if _, affected := got.Seen.Record.Affected(nil); !affected {
		t.Error("without a record everything must count as a change")
	}
}

func TestHistoryIsBoundedAndCountsRepeats(t *testing.T) {
	s := &State{}
	add := func(outcome, message string) []Run {
		return s.Add(Run{Run: v1alpha1.Run{ID: fmt.Sprint(len(s.Runs)), Outcome: outcome, Message: message}}, 2)
	}
	add(Failed, "no answer")
	add(Failed, "no answer")
	add(Published, "1")
	dropped := add(Published, "1")
	if len(s.Runs) != 2 || len(dropped) != 1 || dropped[0].Repeats != 1 || s.Status.LastRun.Message != "1" {
		t.Errorf("runs %+v, dropped %+v", s.Runs, dropped)
	}
}

func TestConditions(t *testing.T) {
	s := &State{}
	now := time.Unix(1, 0)
	s.Ready(now, false, v1alpha1.ReasonSourceFailed, "no answer", false)
	if c := s.Condition(); c.Status != "False" || c.Reason != "SourceFailed" || s.Stalled() || len(s.Status.Conditions) != 2 {
		t.Errorf("%+v", s.Status.Conditions)
	}
	s.Ready(now, false, v1alpha1.ReasonBuildFailed, "typo", true)
	if !s.Stalled() {
		t.Errorf("%+v", s.Status.Conditions)
	}
	s.Ready(now, true, "Published", "3 objects", false)
	if c := s.Condition(); c.Status != "True" || s.Stalled() || len(s.Status.Conditions) != 1 {
		t.Errorf("%+v", s.Status.Conditions)
	}
}

func TestControlAndDiffs(t *testing.T) {
	s := store(t)
	ctx := t.Context()
	if err := s.SetControl(ctx, "a", func(c *Control) { c.Suspended = true }); err != nil {
		t.Fatal(err)
	}
	if err := s.SetControl(ctx, "a", func(c *Control) { c.RequestedAt = "x" }); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	if got := s.Control("a"); !got.Suspended || got.RequestedAt != "x" {
		t.Errorf("%+v", got)
	}
	diff := &Diff{Files: []FileDiff{{Target: "t", Path: "p", Patch: "+x", Injected: []int{1}}}}
	if err := s.SaveDiff(ctx, "a", "1", diff); err != nil {
		t.Fatal(err)
	}
	got, err := s.LoadDiff(ctx, "a", "1")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(diff, got); d != "" {
		t.Error(d)
	}
	s.Drop(ctx, "a", []Run{{Run: v1alpha1.Run{ID: "1"}, Diff: true}})
	if got, err := s.LoadDiff(ctx, "a", "1"); err != nil || got != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestFailuresAreCountedSinceTheLastSuccess also for states that another version has left.
func TestFailuresAreCountedSinceTheLastSuccess(t *testing.T) {
	at := time.Unix(1_800_000_000, 0).UTC()
	s := &State{}
	check := func(step string, success time.Time, failures int) {
		t.Helper()
		if !s.LastSuccess().Equal(success) || s.ConsecutiveFailures() != failures {
			t.Errorf("%s: last success %s, %d failures; want %s, %d", step, s.LastSuccess(), s.ConsecutiveFailures(), success, failures)
		}
	}
	check("at first", time.Time{}, 0)
	s.Ready(at, true, "Succeeded", "", false)
	check("after a success", at, 0)
	for i := range 3 {
		s.Failures, s.Failing = 1, fmt.Sprint("cause ", i)
		s.Ready(at.Add(time.Hour), false, "Failed", "", i == 2)
	}
	check("after failures of three causes", at, 3)
	s.Ready(at.Add(2*time.Hour), true, "Succeeded", "", false)
	check("after the next success", at.Add(2*time.Hour), 0)

	ended := func(outcome string, after time.Duration, repeats int) Run {
		return Run{Run: v1alpha1.Run{Outcome: outcome, Finished: metav1.NewTime(at.Add(after))}, Repeats: repeats}
	}
	s.Succeeded, s.FailedRuns = time.Time{}, 0
	s.Runs = []Run{ended(Refused, 4, 0), ended(Failed, 3, 4), ended(Unchanged, 2, 0), ended(Failed, 1, 0)}
	check("of another version, ready", at.Add(2), 0)
	conditions.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse})
	check("of another version, failing", at.Add(2), 6)
	s.Ready(at.Add(time.Hour), false, "Failed", "", false)
	check("of another version, after one more", at.Add(2), 7)
}
