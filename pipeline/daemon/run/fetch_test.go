// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// TestAPlanThatLookedDuringASlowLookIsNotBelieved: a run begins to look at its source, and gets no answer for a while. A planner
// looks meanwhile, later by the clock, and finds an older revision than the run does in the end. Its job must not bring
// that back.
func TestAPlanThatLookedDuringASlowLookIsNotBelieved(t *testing.T) {
	w := newWorks(t, "shop")
	old := w.repository.Commit("first", map[string]string{"shop/text": "one"})
	planned := queue.Job{Pipeline: "shop", Cause: "planned", Revision: "main@sha1:" + old}
	var slow sync.Once
	w.git.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("service") == "git-upload-pack" {
			slow.Do(func() {
				planned.Since, planned.Resolved = time.Now(), time.Now()
				w.repository.Commit("second", map[string]string{"shop/text": "two"})
			})
		}
		return false
	})
	for _, job := range []queue.Job{{Pipeline: "shop", Cause: "looks", Since: time.Now()}, planned} {
		if job.Cause == planned.Cause {
			job = planned // as it was filled in by the first run
		}
		if err := w.runner.Do(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		if got := w.repository.Git("show", "rendered:shop/configmap-x.yaml"); !strings.Contains(got, "two") {
			t.Errorf("after %s: %s", job.Cause, got)
		}
	}
}

// TestARevisionThatWasPlannedIsNotLookedForAgain, as long as nothing was rendered since the planner looked.
func TestARevisionThatWasPlannedIsNotLookedForAgain(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "one"})
	if err := w.do("shop", "x", 1); err != nil {
		t.Fatal(err)
	}
	second := w.repository.Commit("second", map[string]string{"shop/text": "two"})
	job := queue.Job{
		Pipeline: "shop", Cause: "y", Since: time.Now(), Revision: "main@sha1:" + second, Resolved: time.Now(),
		Rendered: w.state("shop").Seen.Resolved,
	}
	w.repository.Commit("third", map[string]string{"shop/text": "three"})
	if err := w.runner.Do(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if got := w.repository.Git("show", "rendered:shop/configmap-x.yaml"); !strings.Contains(got, "two") {
		t.Errorf("published: %s", got)
	}
}

// TestARevisionThatWasSeenToBeLeftIsNotBelieved: a job of another pipeline has looked at the same source since, and found it elsewhere.
func TestARevisionThatWasSeenToBeLeftIsNotBelieved(t *testing.T) {
	w := newWorks(t, "shop", "cart")
	first := map[string]string{"shop/text": "one", "cart/text": "one"}
	w.repository.Commit("first", first)
	for _, name := range []string{"shop", "cart"} {
		if err := w.do(name, "x", 1); err != nil {
			t.Fatal(err)
		}
	}
	second := w.repository.Commit("second", map[string]string{"shop/text": "two"})
	job := queue.Job{
		Pipeline: "shop", Cause: "y", Since: time.Now(), Revision: "main@sha1:" + second, Resolved: time.Now(),
		Rendered: w.state("shop").Seen.Resolved,
	}
	w.repository.Commit("revert", first)
	if err := w.do("cart", "z", 1); err != nil {
		t.Fatal(err)
	}
	if err := w.runner.Do(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if got := w.repository.Git("show", "rendered:shop/configmap-x.yaml"); !strings.Contains(got, "one") {
		t.Errorf("published: %s", got)
	}
}

// TestARevisionThatWaitedLongIsNotLookedForByEachJob: in an upgrade of a fleet most jobs wait for longer than the planner's look is believed.
// One looks again, and the others of the same source believe that, as long as it has found what was planned.
func TestARevisionThatWaitedLongIsNotLookedForByEachJob(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	w := newWorks(t, names...)
	files := func(text string) map[string]string {
		out := map[string]string{}
		for _, name := range names {
			out[name+"/text"] = text
		}
		return out
	}
	w.repository.Commit("first", files("one"))
	for _, name := range names {
		if err := w.do(name, "x", 1); err != nil {
			t.Fatal(err)
		}
	}
	var looks atomic.Int64
	w.git.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("service") == "git-upload-pack" {
			looks.Add(1)
		}
		return false
	})
	planned := func(name, commit string) queue.Job {
		return queue.Job{
			Pipeline: name, Cause: commit, Since: time.Now(), Revision: "main@sha1:" + commit, Resolved: time.Now().Add(-time.Hour),
			Rendered: w.state(name).Seen.Resolved,
		}
	}
	published := func(name, want string) {
		t.Helper()
		if got := w.repository.Git("show", "rendered:"+name+"/configmap-x.yaml"); !strings.Contains(got, want) {
			t.Errorf("published of %s: %s", name, got)
		}
	}
	second := w.repository.Commit("second", files("two"))
	for _, name := range names[:3] {
		if err := w.runner.Do(t.Context(), planned(name, second)); err != nil {
			t.Fatal(err)
		}
		published(name, "two")
	}
	if got := looks.Load(); got != 1 {
		t.Errorf("the server was asked %d times where one does", got)
	}
	third := w.repository.Commit("third", files("three"))
	for _, name := range []string{"a", "d"} { // a's look finds that it is not what was planned for d
		commit := map[string]string{"a": third, "d": second}[name]
		if err := w.runner.Do(t.Context(), planned(name, commit)); err != nil {
			t.Fatal(err)
		}
		published(name, "three")
	}
}
