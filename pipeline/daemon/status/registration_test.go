// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
)

func TestNothingIsLeftOfAForgottenPipeline(t *testing.T) {
	s := store(t)
	ctx := t.Context()
	register := func() {
		t.Helper()
		if err := s.ChangeRegistration(ctx, "team/a", func(r *Registration) bool {
			r.Policy = v1alpha1.DeletionDelete
			return true
		}); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 2 { // the second time, what is saved takes the place of what was forgotten
		register()
		state, revision, err := s.Load(ctx, "team/a")
		if err != nil || len(state.Runs) > 0 {
			t.Fatalf("round %d: %+v, %v", round, state, err)
		}
		run := Run{Run: v1alpha1.Run{ID: fmt.Sprint(round)}, Diff: true}
		if err := s.SaveDiff(ctx, "team/a", run.ID, &Diff{Files: []FileDiff{{Path: "a"}}}); err != nil {
			t.Fatal(err)
		}
		state.Add(run, 5)
		if _, err := s.Save(ctx, "team/a", state, revision); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := s.SetControl(ctx, "team/a", func(c *Control) { c.Suspended = true }); err != nil {
			t.Fatal(err)
		}
		_, at, err := s.LoadRegistration(ctx, "team/a")
		if err != nil {
			t.Fatal(err)
		}
		register() // somebody changes it meanwhile
		if ok, err := s.Forget(ctx, "team/a", at); err != nil || ok {
			t.Errorf("a registration that was changed was forgotten: %v, %v", ok, err)
		}
		if _, at, err = s.LoadRegistration(ctx, "team/a"); err != nil {
			t.Fatal(err)
		}
		if ok, err := s.Forget(ctx, "team/a", at); err != nil || !ok {
			t.Fatalf("round %d: %v, %v", round, ok, err)
		}
		if err := s.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		if diff, err := s.LoadDiff(ctx, "team/a", run.ID); diff != nil || err != nil {
			t.Errorf("a difference is left: %+v, %v", diff, err)
		}
		if names := s.Registered(); len(names) > 0 || s.Control("team/a").Suspended || len(s.Get("team/a").Runs) > 0 {
			t.Errorf("round %d leaves %v", round, names)
		}
	}
}

func TestRemovedPipelinesAreRememberedForAWhile(t *testing.T) {
	s := store(t)
	for i := range keepRemoved + 3 {
		if err := s.AddRemoved(t.Context(), Removed{Pipeline: fmt.Sprint(i), At: time.Unix(int64(i), 0)}, time.Unix(int64(i)-1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.Removed(); len(got) != keepRemoved || got[0].Pipeline != fmt.Sprint(keepRemoved+2) {
		t.Errorf("%d, the first %+v", len(got), got[0])
	}
}

// TestARemovalThatIsDoneTwiceIsListedOnce: one that is interrupted before the pipeline is forgotten is done again, and finds
// nothing left to do.
func TestARemovalThatIsDoneTwiceIsListedOnce(t *testing.T) {
	s := store(t)
	gone := time.Now()
	for i, message := range []string{"deleted 3 files", "nothing was left of it"} {
		if err := s.AddRemoved(t.Context(), Removed{Pipeline: "a", At: gone.Add(time.Duration(i+1) * time.Second), Message: message}, gone); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddRemoved(t.Context(), Removed{Pipeline: "a", At: gone.Add(time.Hour), Message: "gone once more"}, gone.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range s.Removed() {
		got = append(got, r.Message)
	}
	if want := []string{"gone once more", "deleted 3 files"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestAPipelineThatComesBackWhileItIsForgottenStaysSuspended, as somebody has asked for that.
func TestAPipelineThatComesBackWhileItIsForgottenStaysSuspended(t *testing.T) {
	s := store(t)
	ctx := t.Context()
	change := func(removal *Removal) {
		t.Helper()
		if err := s.ChangeRegistration(ctx, "a", func(r *Registration) bool { r.Removal = removal; return true }); err != nil {
			t.Fatal(err)
		}
	}
	change(&Removal{Approved: true})
	if err := s.SetControl(ctx, "a", func(c *Control) { c.Suspended = true }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(ctx, "a", &State{Fingerprint: "f"}, 0); err != nil {
		t.Fatal(err)
	}
	_, revision, err := s.LoadRegistration(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	change(nil)
	if forgotten, err := s.Forget(ctx, "a", revision); forgotten || err != nil {
		t.Errorf("forgotten %v, %v", forgotten, err)
	}
	if err := s.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	if !s.Control("a").Suspended || s.Get("a").Fingerprint != "" {
		t.Errorf("control %+v, state %+v", s.Control("a"), s.Get("a"))
	}
}

// TestRemovedUIDsAreBounded keeps the newest.
func TestRemovedUIDsAreBounded(t *testing.T) {
	s := store(t)
	all := []string{"newest"}
	for i := range keepRemovedUIDs {
		all = append(all, fmt.Sprint(i))
	}
	data, err := encodeJSON(all[1:])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.q.SaveAfter(t.Context(), removedUIDsName, data, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.AddRemovedUID(t.Context(), "newest"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[string]bool{"newest": true, "0": true, fmt.Sprint(keepRemovedUIDs - 1): false, "": false} {
		if got := s.IsDoubted("shop/web", queue.ObjectVersion{UID: uid, Generation: 1}); got != want {
			t.Errorf("%q: %v", uid, got)
		}
	}
}
