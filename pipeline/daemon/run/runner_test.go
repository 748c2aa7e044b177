// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/internal/storetest"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// renderer renders a ConfigMap with the content of PATH/text, or does what that asks for.
type renderer struct {
	renders atomic.Int64
	during  func() // called by each render, where it is not nil
}

func (r *renderer) Render(_ context.Context, files tree.Reader, request render.Request) (*render.Response, error) {
	r.renders.Add(1)
	if r.during != nil {
		r.during()
	}
	text, err := files.Read(request.Path + "/text")
	if err != nil {
		return nil, err
	}
	switch string(text) {
	case "broken":
		return nil, errors.New("building:\nno such field")
	case "panic":
		panic("no such luck")
	case "slow":
		return nil, fmt.Errorf("rendering: %w", render.ErrTimeout)
	case "killed":
		return nil, fmt.Errorf("%w (signal: killed)", render.ErrEnded)
	case "no process":
		return nil, fmt.Errorf("%w: %w", render.ErrStart, syscall.EAGAIN)
	case "empty":
		return &render.Response{}, nil
	case "definition":
		return &render.Response{Objects: []render.Object{{
			APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "doors.example.org",
			YAML: []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: doors.example.org\n"),
		}}}, nil
	}
	yaml := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  text: %s\n", text)
	return &render.Response{Objects: []render.Object{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", YAML: []byte(yaml)}}}, nil
}

// works is a runner over pipelines of one repository, with everything real but the renderer.
type works struct {
	t          *testing.T
	runner     *Runner
	renderer   *renderer
	git        *gittest.Server
	repository *gittest.Repository
	mu         sync.Mutex
	seen       []Observation
}

func newWorks(t *testing.T, pipelines ...string) *works {
	t.Helper()
	w := &works{t: t, renderer: &renderer{}, git: gittest.New(t)}
	w.repository = w.git.Repository(t, "apps")
	texts := map[string]string{}
	for _, name := range pipelines {
		texts[name] = fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s}\nspec:\n  source: {git: {url: %s, ref: {branch: main}}}\n"+
			"  build: {path: %[1]s}\n  publish: [{git: {branch: rendered}}]\n", name, w.repository.URL)
	}
	w.run(texts)
	return w
}

// run makes the runner, over pipelines by their names.
func (w *works) run(pipelines map[string]string) {
	t := w.t
	t.Helper()
	dir := t.TempDir()
	for name, text := range pipelines {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := catalog.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	q, store := storetest.Open(t)
	fetcher := source.New(source.Options{StateDir: t.TempDir()})
	dog := &watchdog.Watchdog{Grace: 10 * time.Millisecond}
	targets := publish.NewTargets(fetcher, nil, q.Lock, tree.Limits{}, dog)
	targets.WaitForStalled(time.Minute) // what is of one cause is one commit, however busy the machine is
	w.runner = New(Options{
		Catalog: c, PipelinesDir: dir, Fetcher: fetcher, Targets: targets, Builder: &build.Builder{Renderer: w.renderer, Version: "1"},
		Remover: &prune.Remover{Catalog: c, Store: store, Queue: q, Targets: targets, Version: "1", Log: slog.New(slog.DiscardHandler)},
		Store:   store, Queue: q, Watchdog: dog, Workers: 4, History: 3, Observe: func(o Observation) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, o)
		},
	})
}

func (w *works) do(pipeline, cause string, batch int) error {
	return w.runner.Do(w.t.Context(), queue.Job{Pipeline: pipeline, Cause: cause, Batch: batch, Since: time.Now()})
}

func (w *works) state(pipeline string) *status.State {
	w.t.Helper()
	state, _, err := w.runner.Store.Load(w.t.Context(), pipeline)
	if err != nil {
		w.t.Fatal(err)
	}
	return state
}

// commits counts those of the rendered branch.
func (w *works) commits() int {
	if w.repository.Git("branch", "--list", "rendered") == "" {
		return 0
	}
	return strings.Count(w.repository.Git("rev-list", "rendered")+"\n", "\n")
}

// TestOneRunAfterTheOther has a pipeline go from one state to the next.
func TestOneRunAfterTheOther(t *testing.T) {
	w := newWorks(t, "shop")
	for i, step := range []struct {
		name    string
		text    string // committed before, where it is not ""
		down    bool   // the Git server does not answer
		force   bool
		again   bool // the job is to come again
		outcome string
		reason  string // of the condition
		stalled bool
		commits int
		renders int64
	}{
		{name: "the first run", text: "one", outcome: status.Published, reason: "Succeeded", commits: 1, renders: 1},
		{name: "nothing is new", outcome: status.Published, reason: "Succeeded", commits: 1, renders: 1},
		{name: "forced", force: true, outcome: status.Unchanged, reason: "Succeeded", commits: 1, renders: 2},
		{name: "a source that does not answer", down: true, again: true, outcome: status.Failed, reason: v1alpha1.ReasonSourceFailed, commits: 1, renders: 2},
		{name: "and answers again", outcome: status.Unchanged, reason: "Succeeded", commits: 1, renders: 2},
		{name: "a build that fails", text: "broken", outcome: status.Failed, reason: v1alpha1.ReasonBuildFailed, stalled: true, commits: 1, renders: 3},
		{name: "is not tried again", outcome: status.Failed, reason: v1alpha1.ReasonBuildFailed, stalled: true, commits: 1, renders: 3},
		{name: "a gate", text: "empty", outcome: status.Refused, reason: v1alpha1.ReasonGateClosed, stalled: true, commits: 1, renders: 4},
		{name: "stays closed", outcome: status.Refused, reason: v1alpha1.ReasonGateClosed, stalled: true, commits: 1, renders: 4},
		{name: "a source that does not answer then", down: true, again: true, outcome: status.Failed, reason: v1alpha1.ReasonSourceFailed, commits: 1, renders: 4},
		{name: "does not open it", outcome: status.Refused, reason: v1alpha1.ReasonGateClosed, stalled: true, commits: 1, renders: 5},
		{name: "too slow", text: "slow", again: true, outcome: status.Failed, reason: v1alpha1.ReasonBuildFailed, commits: 1, renders: 6},
		{name: "mended", text: "two", outcome: status.Published, reason: "Succeeded", commits: 2, renders: 7},
		{name: "and back", text: "one", outcome: status.Published, reason: "Succeeded", commits: 3, renders: 8},
	} {
		if step.text != "" {
			w.repository.Commit(step.name, map[string]string{"shop/text": step.text})
		}
		w.git.Intercept(func(rw http.ResponseWriter, _ *http.Request) bool {
			if step.down {
				http.Error(rw, "gone", http.StatusForbidden)
			}
			return step.down
		})
		err := w.runner.Do(t.Context(), queue.Job{Pipeline: "shop", Cause: fmt.Sprint(i), Since: time.Now(), Force: step.force})
		var retry *queue.RetryError
		if step.again != errors.As(err, &retry) || err != nil && !step.again {
			t.Errorf("%s: error %v", step.name, err)
		}
		state := w.state("shop")
		if c := state.Condition(); c == nil || c.Reason != step.reason || state.Stalled() != step.stalled || state.Runs[0].Outcome != step.outcome {
			t.Errorf("%s: condition %+v, stalled %v, last run %+v", step.name, c, state.Stalled(), state.Runs[0].Run)
		}
		if got := w.renderer.renders.Load(); got != step.renders || w.commits() != step.commits {
			t.Errorf("%s: %d renders and %d commits, want %d and %d", step.name, got, w.commits(), step.renders, step.commits)
		}
		if strings.Contains(state.Runs[0].Message, "\n") || len(state.Runs) > 3 {
			t.Errorf("%s: message %q, %d runs", step.name, state.Runs[0].Message, len(state.Runs))
		}
	}
	if got := w.repository.Git("grep", "-h", "text:", "rendered"); !strings.Contains(got, "text: one") {
		t.Errorf("the branch holds %q", got)
	}
	if len(w.seen) != 14 {
		t.Errorf("%d runs were told of, want 14", len(w.seen))
	}
}

// TestJobsOfOneCauseMakeOneCommit has jobs that end in different ways, and others of another cause.
func TestJobsOfOneCauseMakeOneCommit(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	w := newWorks(t, names...)
	content := map[string]string{}
	for _, name := range names {
		content[name+"/text"] = "one"
	}
	content["d/text"] = "broken" // the others must not wait for it for ever, nor fail with it
	w.repository.Commit("first", content)
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			if err := w.do(name, "upgrade", len(names)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	if w.commits() != 1 {
		t.Errorf("%d commits", w.commits())
	}
	for _, name := range names {
		if outcome := w.state(name).Runs[0].Outcome; outcome != status.Published && name != "d" || name == "d" && outcome != status.Failed {
			t.Errorf("%s: %s", name, outcome)
		}
	}
	// One of a batch whose others are in another process, or never come, does not wait for them for long.
	w.repository.Commit("second", map[string]string{"a/text": "two"})
	if err := w.do("a", "later", 100); err != nil || w.commits() != 2 {
		t.Errorf("alone: %v, %d commits", err, w.commits())
	}
	// Jobs of two causes go to the branch without harm to each other.
	w.repository.Commit("third", map[string]string{"b/text": "three", "c/text": "three"})
	for _, name := range []string{"b", "c"} {
		all.Go(func() {
			if err := w.do(name, name, 1); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	tip := w.repository.Git("grep", "-h", "text:", "rendered")
	if strings.Count(tip, "three") != 2 || strings.Count(tip, "two") != 1 || strings.Count(tip, "one") != 1 {
		t.Errorf("the branch holds %q", tip)
	}
}

func TestJobsThatAreNoneOfOurs(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("first", map[string]string{"shop/text": "one"})
	var retry *queue.RetryError
	if err := w.do("unknown", "x", 1); !errors.As(err, &retry) {
		t.Errorf("a pipeline that may only not be read yet: %v", err)
	}
	if err := w.runner.Do(t.Context(), queue.Job{Pipeline: "unknown", Since: time.Now().Add(-time.Hour)}); err != nil {
		t.Errorf("a pipeline that is gone: %v", err)
	}
	if err := w.runner.Store.SetControl(t.Context(), "shop", func(c *status.Control) { c.Suspended, c.RequestedAt = true, "t1" }); err != nil {
		t.Fatal(err)
	}
	if err := w.runner.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.do("shop", "x", 1); err != nil || w.renderer.renders.Load() != 0 || w.state("shop").Status.LastHandledReconcileAt != "t1" {
		t.Errorf("a suspended pipeline: %v, %d renders, state %+v", err, w.renderer.renders.Load(), w.state("shop").Status)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.runner.Store.SetControl(t.Context(), "shop", func(c *status.Control) { c.Suspended = false }); err != nil {
		t.Fatal(err)
	}
	if err := w.runner.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.runner.Do(gone, queue.Job{Pipeline: "shop", Cause: "x", Since: time.Now()}); err == nil {
		t.Error("a job counts as done when its process ends")
	}
	if w.commits() != 0 {
		t.Errorf("%d commits", w.commits())
	}
}

// TestRunsSayWhoWroteTheCommit looks for the author and the subject of the source's commit in the status.
func TestRunsSayWhoWroteTheCommit(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("Raise the limit\n\nas asked", map[string]string{"shop/text": "one"})
	if err := w.runner.Do(t.Context(), queue.Job{Pipeline: "shop", Cause: "1", Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	author := strings.TrimSpace(w.repository.Git("log", "-1", "--format=%an"))
	if last := w.state("shop").Status.LastRun; author == "" || last.Author != author || last.Subject != "Raise the limit" {
		t.Errorf("got %q, %q, want %q", last.Author, last.Subject, author)
	}
}
