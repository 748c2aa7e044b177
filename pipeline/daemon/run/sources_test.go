// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// severalWorks is works with one pipeline of three sources, in the order of its names.
type severalWorks struct {
	*works
	repositories []*gittest.Repository
}

var sourceNames = []string{"apps", "platform", "deploy/values"}

// mixing renders a ConfigMap of what all sources hold.
type mixing struct{ *renderer }

func (m mixing) Render(ctx context.Context, files tree.Reader, request render.Request) (*render.Response, error) {
	var all []string
	for _, name := range []string{request.Path + "/text", "platform/text", "deploy/values/text"} {
		text, err := files.Read(name)
		if err != nil {
			return nil, err
		}
		all = append(all, string(text))
	}
	if _, err := m.renderer.Render(ctx, files, request); err != nil {
		return nil, err
	}
	yaml := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  text: %s\n", strings.Join(all, "-"))
	return &render.Response{Objects: []render.Object{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", YAML: []byte(yaml)}}}, nil
}

func newSeveralWorks(t *testing.T) *severalWorks {
	t.Helper()
	w := &severalWorks{works: &works{t: t, renderer: &renderer{}, git: gittest.New(t)}}
	w.repository = w.git.Repository(t, "apps")
	w.repositories = []*gittest.Repository{w.repository, w.git.Repository(t, "platform"), w.git.Repository(t, "values")}
	w.run(map[string]string{"shop": fmt.Sprintf(`apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: shop}
spec:
  source: {git: {url: %s, ref: {branch: main}}}
  sources:
  - {mountPath: platform, git: {url: %s, ref: {branch: main}}}
  - {mountPath: deploy/values, git: {url: %s}}
  build: {path: shop}
  publish: [{git: {branch: rendered}}]
`, w.repositories[0].URL, w.repositories[1].URL, w.repositories[2].URL)})
	w.runner.Builder.Renderer = mixing{w.renderer}
	for i := range w.repositories {
		w.edit(i, "1")
	}
	return w
}

// edit commits a text to one of the sources.
func (w *severalWorks) edit(i int, text string) string {
	w.t.Helper()
	name := "text"
	if i == 0 {
		name = "shop/text"
	}
	return w.repositories[i].Commit("text "+text, map[string]string{name: text})
}

// newest returns what a render of the newest revisions of all sources gives, read without any of Prerig's code.
func (w *severalWorks) newest() string {
	w.t.Helper()
	return "text: " + strings.Join([]string{
		w.repositories[0].Git("show", "main:shop/text"), w.repositories[1].Git("show", "main:text"), w.repositories[2].Git("show", "main:text"),
	}, "-")
}

func (w *severalWorks) published() string {
	w.t.Helper()
	return strings.TrimSpace(w.repository.Git("grep", "-h", "text:", "rendered"))
}

// planned is a job as the planner makes it now: with where all sources are, and what was rendered before.
func (w *severalWorks) planned(cause string) queue.Job {
	w.t.Helper()
	job := queue.Job{Pipeline: "shop", Cause: cause, Since: time.Now(), Resolved: time.Now(), Rendered: w.state("shop").Seen.Resolved, Mounted: map[string]string{}}
	for i, r := range w.repositories {
		revision := "main@sha1:" + r.Git("rev-parse", "main")
		if i == 0 {
			job.Revision = revision
		} else {
			job.Mounted[sourceNames[i]] = revision
		}
	}
	return job
}

// down has the server of one of the sources not answer; -1 has all answer.
func (w *severalWorks) down(i int) {
	w.git.Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		if i < 0 || !strings.HasPrefix(r.URL.Path, "/"+[]string{"apps", "platform", "values"}[i]+".git/") {
			return false
		}
		http.Error(rw, "gone", http.StatusForbidden)
		return true
	})
}

// TestSeveralSources goes through what can become of a pipeline with several sources.
func TestSeveralSources(t *testing.T) {
	w := newSeveralWorks(t)
	run := func(job queue.Job, outcome string) {
		t.Helper()
		if err := w.runner.Do(t.Context(), job); err != nil {
			t.Errorf("%s: %v", job.Cause, err)
		}
		if got := w.state("shop").Runs[0]; got.Outcome != outcome {
			t.Errorf("%s: %s, %s", job.Cause, got.Outcome, got.Message)
		}
		if got, want := w.published(), w.newest(); outcome == status.Published && got != want {
			t.Errorf("%s: published %q, want %q", job.Cause, got, want)
		}
	}
	run(w.planned("first"), status.Published)
	state := w.state("shop")
	values := w.repositories[2].Git("rev-parse", "main")
	last := state.Runs[0].Sources
	if len(last) != 2 || last[0] != (v1alpha1.SourceRevision{MountPath: "platform", URL: w.repositories[1].URL, Revision: "main@sha1:" + w.repositories[1].Git("rev-parse", "main")}) ||
		last[1].MountPath != "deploy/values" || last[1].Revision != "main@sha1:"+values || !slices.Equal(state.Status.Published[0].Sources, last) || !slices.Equal(state.Status.LastRun.Sources, last) {
		t.Errorf("the state has %+v and %+v", last, state.Status.Published)
	}
	if len(state.Seen.Record) < 3 {
		t.Errorf("the record is %v", state.Seen.Record)
	}
	message := w.repository.Git("log", "-1", "--format=%B", "rendered")
	for _, want := range []string{
		"Prerig-Source: " + w.repository.URL + "\n", "Prerig-Mounted-Source: platform " + w.repositories[1].URL + " main@sha1:",
		"Prerig-Mounted-Source: deploy/values " + w.repositories[2].URL + " main@sha1:" + values, "--revision deploy/values=main@sha1:" + values,
	} {
		if !strings.Contains(message, want) {
			t.Errorf("the message lacks %q:\n%s", want, message)
		}
	}
	renders := w.renderer.renders.Load()
	w.repositories[1].Commit("beside", map[string]string{"beside": "2"})
	run(w.planned("a file that is not read"), status.Published)
	if got := w.renderer.renders.Load(); got != renders {
		t.Errorf("a file that is not read made %d renders", got-renders)
	}
	w.edit(1, "2")
	run(w.planned("another source"), status.Published)
	w.repositories[1].InWork("reset", "-q", "--hard", "HEAD^")
	w.repositories[1].InWork("push", "-q", "-f", "origin", "main")
	run(w.planned("rolled back"), status.Published)
	if got := w.published(); got != "text: 1-1-1" {
		t.Errorf("rolled back: %s", got)
	}
	w.edit(2, "3")
	w.edit(0, "3")
	w.down(2)
	var retry *queue.RetryError
	for _, job := range []queue.Job{w.planned("a server that is away"), {Pipeline: "shop", Cause: "and one that was not planned", Since: time.Now()}} {
		if err := w.runner.Do(t.Context(), job); !errors.As(err, &retry) || !strings.Contains(err.Error(), "spec.sources[1], the source at deploy/values") {
			t.Errorf("%s: %v", job.Cause, err)
		}
	}
	if c := w.state("shop").Condition(); c.Reason != v1alpha1.ReasonSourceFailed || !strings.Contains(c.Message, "deploy/values") || w.published() != "text: 1-1-1" {
		t.Errorf("condition %+v, published %s", c, w.published())
	}
	w.down(-1)
	run(queue.Job{Pipeline: "shop", Cause: "it answers again", Since: time.Now()}, status.Published)
	w.repository.Commit("in the way", map[string]string{"platform/text": "x"})
	run(w.planned("a source with a file where another is mounted"), status.Failed)
	if c := w.state("shop").Condition(); !w.state("shop").Stalled() || !strings.Contains(c.Message, "mounting a source at platform") {
		t.Errorf("condition %+v", c)
	}
	w.repository.InWork("rm", "-q", "platform/text")
	w.repository.Commit("out of the way", map[string]string{"shop/text": "4"})
	run(w.planned("mended"), status.Published)
}

// TestAPlanOfSeveralSourcesHoldsOrNot has jobs whose revisions are not all there, or older than what was rendered: none of these is
// rendered, not even of one source.
func TestAPlanOfSeveralSourcesHoldsOrNot(t *testing.T) {
	for name, spoil := range map[string]func(w *severalWorks, job *queue.Job){
		"of a version that knew one source": func(_ *severalWorks, job *queue.Job) { job.Mounted = nil },
		"without one source":                func(_ *severalWorks, job *queue.Job) { delete(job.Mounted, "platform") },
		"with one more":                     func(_ *severalWorks, job *queue.Job) { job.Mounted["gone"] = "main@sha1:0" },
		"with one that is not there": func(_ *severalWorks, job *queue.Job) {
			job.Mounted["platform"] = "main@sha1:" + strings.Repeat("1", 40)
		},
		"from before another run looked": func(_ *severalWorks, job *queue.Job) { job.Rendered = job.Rendered.Add(-time.Second) },
		"from long ago":                  func(_ *severalWorks, job *queue.Job) { job.Resolved = job.Resolved.Add(-time.Hour) },
		"of a source that was moved with it": func(_ *severalWorks, job *queue.Job) {
			job.Mounted["values"] = job.Mounted["deploy/values"]
			delete(job.Mounted, "deploy/values")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSeveralWorks(t)
			if err := w.runner.Do(t.Context(), w.planned("first")); err != nil {
				t.Fatal(err)
			}
			job := w.planned("second")
			for i := range w.repositories {
				w.edit(i, "2")
			}
			spoil(w, &job)
			if err := w.runner.Do(t.Context(), job); err != nil || w.published() != "text: 2-2-2" {
				t.Errorf("published %s, %v", w.published(), err)
			}
		})
	}
}

// TestACrashBetweenTwoFetchesMixesNothing ends the process while one source is fetched and another is not, in a plan and without one.
func TestACrashBetweenTwoFetchesMixesNothing(t *testing.T) {
	for crashed := range sourceNames {
		w := newSeveralWorks(t)
		if err := w.runner.Do(t.Context(), w.planned("first")); err != nil {
			t.Fatal(err)
		}
		for i := range w.repositories {
			w.edit(i, "2")
		}
		for _, job := range []queue.Job{w.planned("planned"), {Pipeline: "shop", Cause: "not planned", Since: time.Now()}} {
			ctx, crash := context.WithCancel(t.Context())
			var once atomic.Bool
			w.git.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
				if strings.HasPrefix(r.URL.Path, "/"+[]string{"apps", "platform", "values"}[crashed]+".git/") && once.CompareAndSwap(false, true) {
					crash()
				}
				return false
			})
			err := w.runner.Do(ctx, job)
			if !errors.Is(err, context.Canceled) || !once.Load() || w.published() != "text: 1-1-1" {
				t.Errorf("%s of %s: published %s, %v", job.Cause, sourceNames[crashed], w.published(), err)
			}
			crash()
		}
		w.down(-1)
		// The job comes again while only one source has moved on.
		job := w.planned("again")
		w.edit(crashed, "3")
		if err := w.runner.Do(t.Context(), job); err != nil || w.published() != "text: 2-2-2" {
			t.Errorf("%s: published %s, %v", sourceNames[crashed], w.published(), err)
		}
		if err := w.runner.Do(t.Context(), queue.Job{Pipeline: "shop", Cause: "last", Since: time.Now()}); err != nil || w.published() != w.newest() {
			t.Errorf("%s: published %s, %v", sourceNames[crashed], w.published(), err)
		}
	}
}

// TestRandomEditsOverSeveralSources edits, takes back and hides sources at random, with jobs that were planned now, some time ago or
// not at all: after each run that ends well, what is published is what the newest revisions give, or all of what was planned, where
// the run that follows the newest event is still to come.
func TestRandomEditsOverSeveralSources(t *testing.T) {
	w := newSeveralWorks(t)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	old, oldText := w.planned("kept"), w.newest()
	for step := range 30 {
		hidden := -1
		for range random.IntN(4) {
			i := random.IntN(len(w.repositories))
			switch random.IntN(4) {
			case 0:
				w.repositories[i].Commit("beside", map[string]string{"beside": fmt.Sprint(step, i, random.Int())})
			case 1:
				if len(strings.Fields(w.repositories[i].Git("rev-list", "main"))) > 1 {
					w.repositories[i].InWork("reset", "-q", "--hard", "HEAD^")
					w.repositories[i].InWork("push", "-q", "-f", "origin", "main")
				}
			case 2:
				hidden = i
			default:
				w.edit(i, fmt.Sprint(step))
			}
		}
		job, planned := queue.Job{Pipeline: "shop"}, w.newest()
		switch random.IntN(3) {
		case 0:
			job = w.planned("")
		case 1:
			job, planned = old, oldText // from before other edits, and perhaps before what was rendered since
		}
		job.Cause, job.Since = fmt.Sprint(step), time.Now()
		if random.IntN(4) == 0 {
			old, oldText = w.planned("kept"), w.newest()
		}
		before := ""
		if step > 0 {
			before = w.published()
		}
		w.down(hidden)
		err := w.runner.Do(t.Context(), job)
		w.down(-1)
		var retry *queue.RetryError
		failed := errors.As(err, &retry) && hidden >= 0
		switch {
		case failed && step > 0 && w.published() != before:
			t.Fatalf("seed %d, step %d: a run that has failed changed %q to %q", seed, step, before, w.published())
		case !failed && (err != nil || w.published() != w.newest() && w.published() != planned):
			t.Fatalf("seed %d, step %d: published %q, want %q or %q, error %v", seed, step, w.published(), w.newest(), planned, err)
		}
		err = w.runner.Do(t.Context(), queue.Job{Pipeline: "shop", Cause: fmt.Sprint(step, " newest"), Since: time.Now()})
		if err != nil || w.published() != w.newest() {
			t.Fatalf("seed %d, step %d: published %q, want %q, error %v", seed, step, w.published(), w.newest(), err)
		}
	}
}

// TestASourceIsNotWritten has a pipeline publish to the branch that a mounted source is read from, which names none.
func TestASourceIsNotWritten(t *testing.T) {
	w := newSeveralWorks(t)
	w.run(map[string]string{"shop": fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: shop}\nspec:\n  source: {git: {url: %s, ref: {branch: main}}}\n"+
		"  sources: [{mountPath: values, git: {url: %s}}]\n  build: {path: shop}\n  publish: [{git: {url: %[2]s, branch: main, adopt: true}}]\n", w.repositories[0].URL, w.repositories[2].URL)})
	before := w.repositories[2].Git("rev-parse", "main")
	if err := w.do("shop", "first", 1); err != nil {
		t.Error(err)
	}
	if state := w.state("shop"); !state.Stalled() || !strings.Contains(state.Condition().Message, "every commit would be read as a new source") || w.repositories[2].Git("rev-parse", "main") != before {
		t.Errorf("condition %+v", state.Condition())
	}
}
