// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source"
)

// edit changes a pipeline's file.
func (w *works) edit(pipeline, old, text string) {
	w.t.Helper()
	name := filepath.Join(w.runner.PipelinesDir, pipeline+".yaml")
	was, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, bytes.Replace(was, []byte(old), []byte(text), 1), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.runner.Catalog.Reload(); err != nil {
		w.t.Fatal(err)
	}
}

// TestAnUnfinishedRenderIsTriedAgain has the status say that it is, and no more often than it says: for what may be the render's own fault
// a few times, and for what is not until it goes well.
func TestAnUnfinishedRenderIsTriedAgain(t *testing.T) {
	for text, most := range map[string]int{"slow": 4, "killed": 4, "no process": 6} {
		w := newWorks(t, "shop")
		w.repository.Commit("first", map[string]string{"shop/text": text})
		for try := 1; try <= min(most, 5); try++ {
			err := w.do("shop", "x", 1)
			if again := errors.As(err, new(*queue.RetryError)); again != (try < most) {
				t.Errorf("%s, try %d: error %v", text, try, err)
			}
			if got := w.renderer.renders.Load(); got != int64(try) || w.state("shop").Stalled() != (try == most) {
				t.Errorf("%s, try %d: %d renders, stalled %v", text, try, got, w.state("shop").Stalled())
			}
		}
	}
}

// TestASourceThatMovesWhileATryIsUnderWayIsSeen: no event asks for another run of a pipeline that is being tried again while
// its source does not answer, so that the try itself must see what has come meanwhile.
func TestASourceThatMovesWhileATryIsUnderWayIsSeen(t *testing.T) {
	for name, second := range map[string]string{"and is published": "two", "and changes nothing": "one", "and fails for good": "broken"} {
		t.Run(name, func(t *testing.T) {
			w := newWorks(t, "shop")
			w.repository.Commit("first", map[string]string{"shop/text": "one"})
			if err := w.do("shop", "x", 1); err != nil {
				t.Fatal(err)
			}
			var down, moved atomic.Bool
			w.git.Intercept(func(rw http.ResponseWriter, _ *http.Request) bool {
				if down.Load() {
					http.Error(rw, "gone", http.StatusForbidden)
				}
				return down.Load()
			})
			down.Store(true)
			if err := w.do("shop", "y", 1); !errors.As(err, new(*queue.RetryError)) {
				t.Fatal(err)
			}
			down.Store(false)
			head := w.repository.Commit("second", map[string]string{"shop/text": second, "docs/x": second})
			job := queue.Job{Pipeline: "shop", Cause: "y", Since: time.Now(), Revision: "main@sha1:" + head, Resolved: time.Now(),
				Rendered: w.state("shop").Seen.Resolved}
			w.runner.Observe = func(Observation) { // a try has got its source, and is not done
				if !moved.Swap(true) {
					w.repository.Commit("third", map[string]string{"shop/text": "three"})
				}
			}
			for tries := 0; ; tries++ {
				err := w.runner.Do(t.Context(), job)
				if err == nil {
					break
				}
				if !errors.As(err, new(*queue.RetryError)) || tries == 5 {
					t.Fatal(err)
				}
			}
			if got := w.repository.Git("show", "rendered:shop/configmap-x.yaml"); !strings.Contains(got, "three") {
				t.Errorf("published: %s", got)
			}
		})
	}
}

// TestTheRevisionOfADirectoryIsThatOfItsFiles: a directory has no earlier revision to go back to.
func TestTheRevisionOfADirectoryIsThatOfItsFiles(t *testing.T) {
	w := newWorks(t)
	w.runner.Fetcher = source.New(source.Options{StateDir: t.TempDir(), AllowDir: true})
	w.runner.sources = source.Share(w.runner.Fetcher)
	if err := os.Mkdir(filepath.Join(w.runner.PipelinesDir, "app"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(w.runner.PipelinesDir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.repository.Commit("first", map[string]string{"x": "1"})
	write("shop.yaml", "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: shop}\nspec:\n  source: {dir: {path: .}}\n"+
		"  build: {path: app}\n  publish: [{git: {url: "+w.repository.URL+", branch: rendered}}]\n")
	write("app/text", "one")
	if _, err := w.runner.Catalog.Reload(); err != nil {
		t.Fatal(err)
	}
	entry, _ := w.runner.Catalog.Get("shop")
	src := entry.Source(w.runner.PipelinesDir)
	planned, err := w.runner.Fetcher.Fetch(t.Context(), source.Scope{}, src, "")
	if err != nil {
		t.Fatal(err)
	}
	write("app/text", "two")
	now, err := w.runner.Fetcher.Fetch(t.Context(), source.Scope{}, src, "")
	if err != nil {
		t.Fatal(err)
	}
	job := queue.Job{Pipeline: "shop", Cause: "x", Since: time.Now(), Revision: planned.Revision, Resolved: time.Now()}
	if err := w.runner.Do(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if got := w.state("shop").Runs[0].Revision; got != now.Revision {
		t.Errorf("published is %s, the status says %s", now.Revision, got)
	}
}

func TestAPanicStopsItsPipelineOnly(t *testing.T) {
	w := newWorks(t, "shop", "team")
	for _, text := range []string{"panic", "one", "two"} {
		w.repository.Commit(text, map[string]string{"shop/text": text, "team/text": "one"})
		for _, pipeline := range []string{"shop", "team"} {
			if err := w.do(pipeline, text, 1); err != nil {
				t.Fatal(err)
			}
			state := w.state(pipeline)
			failed := pipeline == "shop" && text == "panic"
			if c := state.Condition(); state.Stalled() != failed || failed != strings.Contains(c.Message, "please report it: no such luck") {
				t.Errorf("%s: %+v", pipeline, c)
			}
		}
	}
}

// odd panics when it is asked.
type odd struct{}

func (odd) Secret(context.Context, string, string, secret.Purpose) (map[string][]byte, error) {
	panic("odd secret")
}

func TestAPanicOutsideOfTheBuildIsInTheStatus(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "one"})
	w.edit("shop", "ref: {branch: main}", "ref: {branch: main}, secretRef: {name: x}")
	w.runner.Fetcher = source.New(source.Options{StateDir: t.TempDir(), Secrets: odd{}})
	w.runner.sources = source.Share(w.runner.Fetcher)
	if err := w.do("shop", "x", 1); !errors.As(err, new(*queue.RetryError)) {
		t.Errorf("error %v", err)
	}
	if c := w.state("shop").Condition(); c == nil || c.Reason != "SourceFailed" || !strings.Contains(c.Message, "odd secret") {
		t.Errorf("condition %+v", c)
	}
}

// TestAJobWaitsForTheDefinitionThatItWasPlannedFor, which this process may read later than the one that planned.
func TestAJobWaitsForTheDefinitionThatItWasPlannedFor(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "one"})
	entry, _ := w.runner.Catalog.Get("shop")
	job := func(spec string, since time.Time) queue.Job {
		return queue.Job{Pipeline: "shop", Cause: spec, Since: since, Spec: spec}
	}
	for _, step := range []struct {
		name    string
		job     queue.Job
		again   bool
		renders int64
	}{
		{"another definition", job("sha256:later", time.Now()), true, 0},
		{"this one", job(entry.Digest, time.Now()), false, 1},
		{"one that does not come", job("sha256:later", time.Now().Add(-time.Hour)), false, 1},
	} {
		err := w.runner.Do(t.Context(), step.job)
		if again := errors.As(err, new(*queue.RetryError)); again != step.again || err != nil && !again || w.renderer.renders.Load() != step.renders {
			t.Errorf("%s: %v, %d renders", step.name, err, w.renderer.renders.Load())
		}
	}
	if err := os.WriteFile(filepath.Join(w.runner.PipelinesDir, "shop.yaml"), []byte("kind: RenderPipeline\nmetadata: {name: shop}\nspecc: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.runner.Catalog.Reload(); err != nil {
		t.Fatal(err)
	}
	if err := w.runner.Do(t.Context(), job(entry.Digest, time.Now())); !errors.As(err, new(*queue.RetryError)) {
		t.Errorf("one that is not valid here yet: %v", err)
	}
}

// TestWhatFailsAtSeveralPlacesIsToldOfAll has a gate close at one and the other belong to somebody else.
func TestWhatFailsAtSeveralPlacesIsToldOfAll(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "definition"})
	if err := w.do("shop", "x", 1); err != nil {
		t.Fatal(err)
	}
	w.edit("shop", "{git: {branch: rendered}}", "{git: {branch: rendered}}, {git: {branch: theirs}}")
	w.repository.Git("branch", "theirs", "main")
	w.repository.Commit("second", map[string]string{"shop/text": "one"}) // deletes the definition
	for renders := int64(2); renders <= 3; renders++ {                   // what others may have mended is looked at each time
		if err := w.do("shop", "y", 1); err != nil {
			t.Fatal(err)
		}
		c := w.state("shop").Condition()
		if !strings.Contains(c.Message, "allowDeletedCRDs") || !strings.Contains(c.Message, "is not written by Prerig") {
			t.Errorf("condition %+v", c)
		}
		if got := w.renderer.renders.Load(); got != renders {
			t.Errorf("%d renders, want %d", got, renders)
		}
	}
}

// TestASourceThatIsAwayASecondTimeIsToldOf as one that is away for the first time, and each try of one time is not.
func TestASourceThatIsAwayASecondTimeIsToldOf(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "one"})
	var down atomic.Bool
	w.git.Intercept(func(rw http.ResponseWriter, _ *http.Request) bool {
		if down.Load() {
			http.Error(rw, "gone", http.StatusForbidden)
		}
		return down.Load()
	})
	for i, step := range []struct {
		down          bool
		runs, repeats int
	}{{false, 1, 0}, {true, 2, 0}, {true, 2, 1}, {false, 3, 0}, {true, 3, 0}, {true, 3, 1}} {
		down.Store(step.down)
		if err := w.do("shop", fmt.Sprint(i), 1); (err != nil) != step.down {
			t.Fatal(err)
		}
		if runs := w.state("shop").Runs; len(runs) != step.runs || runs[0].Repeats != step.repeats {
			t.Errorf("step %d: %d runs, the last of them repeated %d times", i, len(runs), runs[0].Repeats)
		}
	}
}

// TestAPolicyThatChangesDuringARenderIsRenderedNext, as that has read what it was before.
func TestAPolicyThatChangesDuringARenderIsRenderedNext(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "one"})
	w.runner.Builder.Policies = t.TempDir()
	policy := func(name string) {
		text := "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: " + name + "}\n"
		if err := os.WriteFile(filepath.Join(w.runner.Builder.Policies, "mesh.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	policy("before")
	w.edit("shop", "  publish:", "  policies: [{file: mesh.yaml}]\n  publish:")
	w.renderer.during = func() { policy("after") }
	for _, renders := range []int64{1, 2, 2} {
		if err := w.do("shop", fmt.Sprint(renders), 1); err != nil {
			t.Fatal(err)
		}
		if got := w.renderer.renders.Load(); got != renders {
			t.Errorf("%d renders, want %d", got, renders)
		}
	}
}

// TestAClockThatIsAheadDoesNotMakeAnOldRevisionNew: the planner's is not the worker's.
func TestAClockThatIsAheadDoesNotMakeAnOldRevisionNew(t *testing.T) {
	w := newWorks(t, "shop")
	old := w.repository.Commit("first", map[string]string{"shop/text": "one"})
	w.repository.Commit("second", map[string]string{"shop/text": "two"})
	job := queue.Job{Pipeline: "shop", Cause: "x", Since: time.Now(), Revision: "main@sha1:" + old, Resolved: time.Now().Add(time.Hour)}
	if err := w.runner.Do(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if got := w.repository.Git("show", "rendered:shop/configmap-x.yaml"); !strings.Contains(got, "two") {
		t.Errorf("published: %s", got)
	}
}

// TestABranchThatWasForcedElsewhereAfterItWasPlanned: the server need not give the commit that the planner has found.
func TestABranchThatWasForcedElsewhereAfterItWasPlanned(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "one"})
	lost := w.repository.Commit("second", map[string]string{"shop/text": "two"})
	w.repository.InWork("reset", "-q", "--hard", "HEAD~1")
	w.repository.InWork("push", "-qf", "origin", "HEAD")
	w.repository.Git("reflog", "expire", "--expire=now", "--all")
	w.repository.Git("gc", "-q", "--prune=now")
	job := queue.Job{Pipeline: "shop", Cause: "x", Since: time.Now(), Revision: "main@sha1:" + lost, Resolved: time.Now()}
	if err := w.runner.Do(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if got := w.repository.Git("show", "rendered:shop/configmap-x.yaml"); !strings.Contains(got, "one") {
		t.Errorf("published: %s", got)
	}
}

func TestARequestThatWasHandledStaysSo(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "one"})
	const annotation = ", annotations: {reconcile.fluxcd.io/requestedAt: monday}}"
	for i, step := range []struct{ old, text, want string }{
		{"shop}", "shop" + annotation, "monday"}, {annotation, "}", "monday"}, {"shop}", "shop" + strings.Replace(annotation, "monday", "tuesday", 1), "tuesday"},
	} {
		w.edit("shop", step.old, step.text)
		if err := w.do("shop", fmt.Sprint(i), 1); err != nil {
			t.Fatal(err)
		}
		if got := w.state("shop").Status.LastHandledReconcileAt; got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

// TestFindingsAreBounded, as a state that is too large to be saved would have its run done again and again.
func TestFindingsAreBounded(t *testing.T) {
	var response render.Response
	for range 2 * maxFindings {
		response.Warnings = append(response.Warnings, strings.Repeat("an odd line\n", 1<<16))
	}
	found := findingLines(&response)
	if size := len(strings.Join(found, "")); len(found) != maxFindings+1 || size > 64<<10 {
		t.Errorf("%d findings of %d bytes", len(found), size)
	}
	for _, text := range found {
		if strings.Contains(text, "\n") {
			t.Fatalf("a finding has several lines: %.100q", text)
		}
	}
}
