// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/statetest"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// bed is a planner over n pipelines of one repository that have all been rendered.
type bed struct {
	t          testing.TB
	planner    *plan.Planner
	repository *gittest.Repository
	queue      *queue.Queue
	store      *status.Store

	git *gittest.Server

	pipelines, policies, queueDir, state string // directories
}

func name(i int) string { return fmt.Sprintf("app-%04d", i) }

// newBed takes the pipelines' files from pipeline, and policies from a directory of the planner's own.
func newBed(t testing.TB, n int, pipeline func(i int, url string) string) *bed {
	t.Helper()
	b := &bed{t: t, git: gittest.New(t), pipelines: t.TempDir(), policies: t.TempDir(), queueDir: statetest.Dir(t), state: t.TempDir()}
	b.repository = b.git.Repository(t, "apps")
	files := map[string]string{"policy/kustomization.yaml": "resources: [policy.yaml]\n", "policy/policy.yaml": "kind: InjectionPolicy\n"}
	b.write(b.policies, "mesh.yaml", "kind: InjectionPolicy\n")
	for i := range n {
		maps.Copy(files, map[string]string{
			"apps/" + name(i) + "/app.yaml":           "kind: Deployment\nmetadata: {name: " + name(i) + "}\n",
			"apps/" + name(i) + "/kustomization.yaml": "resources: [app.yaml]\ntransformers: [../../policy]\n",
		})
		b.write(b.pipelines, name(i)+".yaml", pipeline(i, b.repository.URL))
	}
	b.repository.Commit("first", files)
	pipelines, err := catalog.Open(b.pipelines, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b.queue, err = queue.Open(t.Context(), queue.Options{Dir: b.queueDir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.queue.Close)
	if b.store, err = status.NewStore(t.Context(), b.queue); err != nil {
		t.Fatal(err)
	}
	b.planner = &plan.Planner{
		Catalog: pipelines, PipelinesDir: b.pipelines, Fetcher: source.New(source.Options{StateDir: b.state}),
		Builder: &build.Builder{Version: "test", Policies: b.policies}, Store: b.store, Queue: b.queue, Log: slog.New(slog.DiscardHandler),
	}
	for _, e := range pipelines.All() {
		if e.Err != nil {
			t.Fatal(e.Err)
		}
		b.rendered(e)
	}
	return b
}

func (b *bed) write(dir, name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// rendered saves the state of a pipeline that was rendered as its repository is now: it has looked at what kustomize
// looks at.
func (b *bed) rendered(e catalog.Entry) {
	b.t.Helper()
	app := e.Pipeline.Metadata.Name
	snapshot, err := b.planner.Fetcher.Fetch(b.t.Context(), source.Scope{}, e.Pipeline.Spec.Source, "")
	if err != nil {
		b.t.Fatal(err)
	}
	view := tree.NewView(snapshot.Tree, tree.Limits{})
	for _, dir := range []string{"apps/" + app, "policy"} {
		_, _ = view.Lookup(dir)
		for _, file := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
			_, _ = view.Read(dir + "/" + file)
		}
	}
	_, _ = view.Lookup("apps/" + app + "/app.yaml")
	_, _ = view.Read("apps/" + app + "/app.yaml")
	_, _ = view.Lookup("policy/policy.yaml")
	_, _ = view.Read("policy/policy.yaml")
	state, revision, err := b.store.Load(b.t.Context(), e.Key)
	if err != nil {
		b.t.Fatal(err)
	}
	now := time.Now()
	one := v1alpha1.Run{ID: e.Key, Outcome: status.Published, Revision: snapshot.Revision, Started: metav1.NewTime(now), Finished: metav1.NewTime(now)}
	state.Seen = status.Seen{
		Outcome: status.Published, Revision: snapshot.Revision, Resolved: now, Request: b.planner.Builder.RequestDigest(e.Pipeline), Record: view.Record(),
	}
	state.Add(status.Run{Run: one}, 10)
	state.Ready(now, true, "Succeeded", "1 object", false)
	if _, err := b.store.Save(b.t.Context(), e.Key, state, revision); err != nil {
		b.t.Fatal(err)
	}
}

// asked returns the pipelines that are to run, and runs them.
func (b *bed) asked() []string {
	b.t.Helper()
	pending, err := b.queue.Pending(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	if len(pending) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	var done []string
	if err := b.queue.Work(ctx, 1, func(_ context.Context, j queue.Job) error {
		if e, ok := b.planner.Catalog.Get(j.Pipeline); ok {
			b.rendered(e)
		}
		if done = append(done, j.Pipeline); len(done) == len(pending) {
			cancel()
		}
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	slices.Sort(done)
	return done
}

func branches(i int, url string) string {
	return fmt.Sprintf(`apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: %[1]s}
spec:
  source: {git: {url: %[2]s, ref: {branch: main}}}
  build: {path: apps/%[1]s}
  publish: [{git: {branch: rendered}}]
`, name(i), url)
}

func (b *bed) event(commit string) event.Event {
	return event.Event{ID: commit, Receiver: "git", Changes: []event.Change{{Git: &event.GitChange{URLs: []string{b.repository.URL}, Ref: "refs/heads/main", After: commit}}}}
}

// TestOnlyWhatIsAffectedIsAskedFor has one planner go through many changes: what it remembers of earlier ones must not
// keep a pipeline from running.
func TestOnlyWhatIsAffectedIsAskedFor(t *testing.T) {
	b := newBed(t, 4, func(i int, url string) string {
		switch i {
		case 2:
			return branches(i, url) + "  policies: [{file: mesh.yaml}]\n"
		case 3:
			return strings.Replace(branches(i, url), "branch: rendered", "branch: env, propose: {}", 1)
		}
		return branches(i, url)
	})
	all, allButProposed := []string{name(0), name(1), name(2), name(3)}, []string{name(0), name(1), name(2)}
	always := []string{name(3)} // its promoter waits for a note on each commit
	with := func(names ...string) []string { return append(names, always...) }
	for _, step := range []struct {
		name   string
		commit map[string]string // an empty content removes
		do     func()
		want   []string
	}{
		{name: "no new commit"},
		{name: "a file that nobody reads", commit: map[string]string{"docs/README.md": "1"}, want: always},
		{name: "the same again", commit: map[string]string{"docs/README.md": "2"}, want: always},
		{name: "a file of one", commit: map[string]string{"apps/app-0001/app.yaml": "kind: Service\n"}, want: with(name(1))},
		{name: "a file beside one that was read", commit: map[string]string{"apps/app-0001/more.yaml": "1"}, want: always},
		{name: "a file that one had looked for", commit: map[string]string{"apps/app-0000/kustomization.yml": "1"}, want: with(name(0))},
		{name: "and gone again", commit: map[string]string{"apps/app-0000/kustomization.yml": ""}, want: with(name(0))},
		{name: "what all share", commit: map[string]string{"policy/policy.yaml": "kind: Other\n"}, want: all},
		{name: "nobody again", commit: map[string]string{"docs/README.md": "3"}, want: always},
		{name: "a policy of the planner's own", do: func() { b.write(b.policies, "mesh.yaml", "kind: Another\n") }, want: []string{name(2)}},
		{name: "nothing at all"},
		{name: "a pipeline", do: func() {
			b.write(b.pipelines, name(0)+".yaml", branches(0, b.repository.URL)+"  policies: [{builtIn: istio}]\n")
			b.reload()
		}, want: []string{name(0)}},
		{name: "a label of a pipeline", do: func() {
			b.write(b.pipelines, name(1)+".yaml", strings.Replace(branches(1, b.repository.URL), "{name:", "{labels: {a: b}, name:", 1))
			b.reload()
		}},
		{name: "a run that failed", do: func() {
			b.change(name(0), func(s *status.State) { s.Seen.Outcome, s.Seen.Stage = status.Failed, status.StagePublish })
		}, want: []string{name(0)}},
		{name: "a source that did not answer", do: func() {
			b.change(name(1), func(s *status.State) { s.Ready(time.Now(), false, v1alpha1.ReasonSourceFailed, "no answer", false) })
		}, want: []string{name(1)}},
		{name: "a record that was too large to keep", do: func() { b.change(name(1), func(s *status.State) { s.Seen.Record = nil }) }, want: []string{name(1)}},
		{name: "a suspended one", commit: map[string]string{"policy/policy.yaml": "kind: Third\n"}, do: func() { b.suspend(name(3), true) }, want: allButProposed},
		{name: "and not suspended any more", do: func() { b.suspend(name(3), false) }, want: always},
		{name: "the branch goes back", do: func() {
			b.repository.InWork("reset", "-q", "--hard", "HEAD~2")
			b.repository.InWork("push", "-qf", "origin", "HEAD")
		}, want: all},
		{name: "and nobody once more", commit: map[string]string{"docs/README.md": "4"}, want: always},
	} {
		commit := "none"
		if step.commit != nil {
			commit = b.repository.Commit(step.name, step.commit)
		}
		if step.do != nil {
			step.do()
		}
		if err := b.planner.Event(t.Context(), b.event(commit), time.Now()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, b.asked(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}

func (b *bed) reload() {
	b.t.Helper()
	if changed, err := b.planner.Catalog.Reload(); err != nil || len(changed) != 1 {
		b.t.Fatalf("changed %v, %v", changed, err)
	}
}

func (b *bed) change(pipeline string, f func(*status.State)) {
	b.t.Helper()
	state, revision, err := b.store.Load(b.t.Context(), pipeline)
	if err == nil {
		f(state)
		_, err = b.store.Save(b.t.Context(), pipeline, state, revision)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) suspend(pipeline string, yes bool) {
	b.t.Helper()
	if err := b.store.SetControl(b.t.Context(), pipeline, func(c *status.Control) { c.Suspended = yes }); err != nil {
		b.t.Fatal(err)
	}
}

func BenchmarkEventThatTouchesNothing(b *testing.B) {
	for _, n := range []int{1, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			bed := newBed(b, n, branches)
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				commit := bed.repository.Commit("docs", map[string]string{"docs/README.md": fmt.Sprint(i)})
				b.StartTimer()
				if err := bed.planner.Event(context.Background(), bed.event(commit), time.Now()); err != nil {
					b.Fatal(err)
				}
			}
			if depth, err := bed.queue.Depth(b.Context(), nil); err != nil || depth.Jobs != 0 {
				b.Fatalf("%d jobs, %v", depth.Jobs, err)
			}
		})
	}
}

// BenchmarkEventAfterOneHasRun is about an event that touches nothing after something was stored of one pipeline.
func BenchmarkEventAfterOneHasRun(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			bed := newBed(b, n, branches)
			look := func(i int) {
				b.StopTimer()
				commit := bed.repository.Commit("docs", map[string]string{"docs/README.md": fmt.Sprint(i)})
				bed.change(name(i%n), func(s *status.State) { s.Fingerprint = fmt.Sprint(i) })
				b.StartTimer()
				if err := bed.planner.Event(context.Background(), bed.event(commit), time.Now()); err != nil {
					b.Fatal(err)
				}
			}
			look(0) // it goes through all
			b.ResetTimer()
			for i := 1; b.Loop(); i++ {
				look(i)
			}
		})
	}
}
