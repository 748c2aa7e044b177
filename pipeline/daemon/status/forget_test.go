// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"
)

// TestWhatAnotherProcessForgetsIsNotKept has two stores on one state: one follows what the other stores and forgets.
func TestWhatAnotherProcessForgetsIsNotKept(t *testing.T) {
	s := store(t)
	ctx := t.Context()
	other, err := NewStore(ctx, s.q)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.ChangeRegistration(ctx, "team/a", func(r *Registration) bool { r.Namespace = "team"; return true }); err != nil {
		t.Fatal(err)
	}
	if err := other.SetControl(ctx, "team/a", func(c *Control) { c.RequestedAt = "t1" }); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Save(ctx, "team/a", &State{Failures: 1}, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	r, _ := s.Registration("team/a")
	if r.Namespace != "team" || s.Control("team/a").RequestedAt != "t1" || s.Get("team/a").Failures != 1 {
		t.Fatal("what was stored is not known")
	}
	if len(s.registrations) != 1 || len(s.controls) != 1 || len(s.decoded) != 1 {
		t.Fatalf("kept are %d, %d and %d", len(s.registrations), len(s.controls), len(s.decoded))
	}
	told := make(chan string, 16) // after the store itself was told
	s.OnChange(func(pipeline string) { told <- pipeline })
	_, revision, err := other.LoadRegistration(ctx, "team/a")
	if err != nil {
		t.Fatal(err)
	}
	if forgotten, err := other.Forget(ctx, "team/a", revision); err != nil || !forgotten {
		t.Fatalf("forgotten is %v, %v", forgotten, err)
	}
	for range 3 {
		select {
		case <-told:
		case <-time.After(3 * time.Minute):
			t.Fatal("the store is not told")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.registrations)+len(s.controls)+len(s.decoded) > 0 {
		t.Errorf("kept are %d registrations, %d controls and %d states", len(s.registrations), len(s.controls), len(s.decoded))
	}
}
