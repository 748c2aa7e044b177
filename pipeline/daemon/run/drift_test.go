// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

// editRendered has somebody change the rendered branch by hand.
func (w *works) editRendered(subject string, files map[string]string) string {
	w.t.Helper()
	w.repository.InWork("fetch", "-q", "origin", "rendered")
	w.repository.InWork("checkout", "-q", "-B", "rendered", "FETCH_HEAD")
	return w.repository.Commit(subject, files)
}

// look does a job that looks for drift, and returns the state after it.
func (w *works) look() *status.State {
	w.t.Helper()
	if err := w.runner.Do(w.t.Context(), queue.Job{Pipeline: "shop", Cause: "look", Since: time.Now(), Drift: true}); err != nil {
		w.t.Fatal(err)
	}
	return w.state("shop")
}

const renderedFile = "shop/configmap-x.yaml"

// TestFinding8ReconcileTellsTheTruth asks for a run after somebody has changed what is published.
func TestFinding8ReconcileTellsTheTruth(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "one"})
	ask := func(token string, force bool) *status.State {
		t.Helper()
		if err := w.runner.Store.SetControl(t.Context(), "shop", func(c *status.Control) { c.RequestedAt, c.Force = token, force }); err != nil {
			t.Fatal(err)
		}
		if err := w.do("shop", token, 1); err != nil {
			t.Fatal(err)
		}
		state := w.state("shop")
		if state.Status.LastHandledReconcileAt != token {
			t.Errorf("%s was not handled", token)
		}
		return state
	}
	ask("first", false)
	edit := w.editRendered("Scale by hand", map[string]string{renderedFile: "kind: Edited\n", "README.md": "x"})
	state := ask("second", false)
	c := state.Condition()
	if c.Reason != v1alpha1.ReasonDrifted || c.Status != "False" || state.Runs[0].Outcome != status.Drifted {
		t.Fatalf("condition %+v, last run %+v", c, state.Runs[0])
	}
	for _, want := range []string{renderedFile + " was changed", edit[:12], "Scale by hand"} {
		if !strings.Contains(c.Message, want) {
			t.Errorf("the message does not have %q: %s", want, c.Message)
		}
	}
	if runs := len(ask("third", false).Runs); runs != 2 {
		t.Errorf("the same again makes %d runs", runs)
	}
	if state = ask("fourth", true); state.Condition().Status != "True" || !strings.Contains(w.repository.Git("show", "rendered:"+renderedFile), "text: one") {
		t.Errorf("forced: %+v", state.Condition())
	}
	w.repository.Git("branch", "-D", "rendered")
	if c := ask("fifth", false).Condition(); c.Reason != v1alpha1.ReasonDrifted || !strings.Contains(c.Message, "the branch rendered was deleted") {
		t.Errorf("a deleted branch: %+v", c)
	}
	if w.commits() != 0 {
		t.Error("it was put back although the pipeline only reports")
	}
}

// TestFinding8WhatIsMendedByHandIsReady has somebody take back what they have changed.
func TestFinding8WhatIsMendedByHandIsReady(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "one"})
	w.look()
	was := w.repository.Git("show", "rendered:"+renderedFile) + "\n"
	w.editRendered("edit", map[string]string{renderedFile: "kind: Edited\n"})
	if state := w.look(); !state.IsDrifted() {
		t.Fatalf("%+v", state.Condition())
	}
	w.editRendered("take it back", map[string]string{renderedFile: was})
	if c := w.look().Condition(); c.Status != "True" {
		t.Errorf("%+v", c)
	}
}

// TestFinding8RepairsAreBounded has another writer change what is published again and again.
func TestFinding8RepairsAreBounded(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "one"})
	w.look()
	entry, _ := w.runner.Catalog.Get("shop")
	entry.Pipeline.Spec.Drift = v1alpha1.DriftRepair
	later := func(by time.Duration) {
		t.Helper()
		state, revision, err := w.runner.Store.Load(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		state.Drift.Repaired = state.Drift.Repaired.Add(-by)
		if _, err := w.runner.Store.Save(t.Context(), "shop", state, revision); err != nil {
			t.Fatal(err)
		}
	}
	for n := range status.MaxRepairs {
		w.editRendered("the other writer", map[string]string{renderedFile: "kind: Edited\n"})
		if n > 0 {
			if state := w.look(); !state.IsDrifted() || !strings.Contains(state.Condition().Message, "is again in a while") {
				t.Errorf("repair %d, at once: %+v", n, state.Condition())
			}
			later(time.Hour)
		}
		state := w.look()
		if c := state.Condition(); c.Status != "True" || !strings.Contains(c.Message, "put back what others had changed") || state.Drift.Repairs != n+1 {
			t.Fatalf("repair %d: %+v", n, c)
		}
	}
	w.editRendered("the other writer", map[string]string{renderedFile: "kind: Edited\n"})
	later(time.Hour)
	commits := w.commits()
	if state := w.look(); !state.IsDrifted() || !strings.Contains(state.Condition().Message, "something else writes there") || w.commits() != commits {
		t.Errorf("too often: %+v", state.Condition())
	}
	later(status.RepairsForgotten)
	if state := w.look(); state.Condition().Status != "True" || state.Drift.Repairs != 1 {
		t.Errorf("a day later: %+v, %+v", state.Condition(), state.Drift)
	}
}
