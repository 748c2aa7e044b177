// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
)

func TestStageOf(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		stage string
		final bool
	}{
		"a gate":             {fmt.Errorf("to x: %w", &publish.GateError{}), status.StageGate, true},
		"somebody's branch":  {fmt.Errorf("to x: %w", publish.ErrUnmanaged), status.StagePublish, true},
		"somebody's file":    {fmt.Errorf("to x: %w", publish.ErrNotOwned), status.StagePublish, true},
		"what is no file":    {fmt.Errorf("%w: a/b", errContent), status.StagePublish, true},
		"a server that errs": {errors.New("no route"), status.StagePublish, false},
	} {
		if got := publishError(test.err); got.Stage != test.stage || got.Final != test.final || !errors.Is(got, test.err) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestFindings(t *testing.T) {
	response := &render.Response{Warnings: []string{"w"}, Results: []result.Result{{Severity: result.Info, Message: "silent"}, {Severity: result.Error, Message: "loud"}}}
	got := findingLines(response)
	if len(got) != 2 || got[0] != "warning: w" || !strings.Contains(got[1], "loud") {
		t.Errorf("got %q", got)
	}
	for range 30 {
		response.Warnings = append(response.Warnings, "w")
	}
	if got := findingLines(response); len(got) != maxFindings+1 || got[maxFindings] != "and more" {
		t.Errorf("got %d findings, the last is %q", len(got), got[len(got)-1])
	}
}

// cutOff has a run of the pipeline end between its push and the saving of its state, as a kill would.
func (w *works) cutOff(pipeline string, batch int) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	w.git.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(rw, r)
			if strings.HasSuffix(r.URL.Path, "/git-receive-pack") && r.Method == http.MethodPost {
				cancel()
			}
		})
	})
	if err := w.runner.Do(ctx, queue.Job{Pipeline: pipeline, Cause: "cut off", Batch: batch, Since: time.Now()}); !errors.Is(err, context.Canceled) {
		w.t.Fatalf("the run was not cut off: %v", err)
	}
}

// TestCutOffWhileItPublishes has a run end after its push, and everything be again as it was before that run when the next one comes:
// what is published must follow, although the state that is known says that nothing has changed.
func TestCutOffWhileItPublishes(t *testing.T) {
	for name, batch := range map[string]int{"alone": 1, "with others": 2} {
		t.Run(name, func(t *testing.T) { cutOffWhileItPublishes(t, batch) })
	}
}

func cutOffWhileItPublishes(t *testing.T, batch int) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "one"})
	w.look()
	w.repository.Commit("second", map[string]string{"shop/text": "two"})
	w.cutOff("shop", batch)
	shown := func() string { return w.repository.Git("show", "rendered:"+renderedFile) }
	if !strings.Contains(shown(), "text: two") {
		t.Fatalf("the push was lost:\n%s", shown())
	}
	w.repository.Commit("as before", map[string]string{"shop/text": "one"})

	// A source that does not answer tells nothing of what is published.
	url := w.repository.URL
	entry, _ := w.runner.Catalog.Get("shop")
	entry.Pipeline.Spec.Source.Git.URL = url + "-gone"
	if err := w.do("shop", "gone", 1); err == nil {
		t.Fatal("a source that is not there was read")
	}
	entry.Pipeline.Spec.Source.Git.URL = url

	if state := w.look(); state.IsDrifted() || state.Condition().Status != "True" {
		t.Errorf("the next run says %+v", state.Condition())
	}
	if !strings.Contains(shown(), "text: one") {
		t.Errorf("the branch still shows what the run that was cut off has published:\n%s", shown())
	}
	commits := w.commits()
	if w.look(); w.commits() != commits || w.state("shop").Publishing {
		t.Error("it is published once more")
	}
}

// TestACommitIsNotedOnce has pipelines publish together: that they are about to be is stored once for all of them, and forgotten when
// their states are stored.
func TestACommitIsNotedOnce(t *testing.T) {
	names := []string{"bar", "cellar", "shop"}
	w := newWorks(t, names...)
	table, err := w.runner.Queue.Table(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	publish := func(text string) {
		t.Helper()
		files := map[string]string{}
		for _, name := range names {
			files[name+"/text"] = text
		}
		w.repository.Commit(text, files)
		var group errgroup.Group
		for _, name := range names {
			group.Go(func() error { return w.do(name, text, len(names)) })
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if err := table.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	publish("one")
	before, commits := table.Seen(), w.commits()
	publish("two")
	if got := w.commits() - commits; got != 1 {
		t.Errorf("there are %d commits", got)
	}
	changed, _, ok := table.ChangedSince(before)
	notes := 0
	for _, name := range changed {
		if strings.HasPrefix(name, "publishing/") {
			notes++
		}
	}
	if !ok || notes != 2 {
		t.Errorf("of the changes %v, %d are of the note of the commit: it is to be stored once and deleted once", changed, notes)
	}
	if left := table.Names("publishing/"); len(left) > 0 {
		t.Errorf("there are notes left: %v", left)
	}
}
