// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// object is a pipeline that is an object of a cluster.
type object struct {
	version queue.ObjectVersion
	path    string // of its build
}

func (o object) text(url string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"prerig.dev/v1alpha1","kind":"RenderPipeline","metadata":{"name":"web","namespace":"shop"},"spec":{"source":{"git":{"url":%q,"ref":{"branch":"main"}}},`+
		`"deletionPolicy":"Delete","build":{"path":%q},"publish":[{"git":{"branch":"rendered"}}]}}`, url, o.path)
}

// objects are those of a cluster as a replica has read them: none, or shop/web.
type objects struct {
	url  string
	seen *object
	// deleted is what was seen of one that was deleted.
	deleted *object
	// now is what the API server has.
	now **object
	// cut says that it cannot be reached.
	cut bool
}

func (o *objects) String() string { return "cluster c" }

func (o *objects) IsDeleted(string) bool { return o.deleted != nil }

func (o *objects) LastText(string) []byte {
	if o.deleted == nil {
		return nil
	}
	return o.deleted.text(o.url)
}

func (o *objects) Pipelines() ([]catalog.Object, error) {
	if o.cut {
		return nil, errors.New("the API server does not answer")
	}
	if o.seen == nil {
		return nil, nil
	}
	return []catalog.Object{{Namespace: "shop", Name: "web", Version: o.seen.version, Text: o.seen.text(o.url)}}, nil
}

func (o *objects) Confirm(_ context.Context, _ string, version queue.ObjectVersion) error {
	if o.cut || *o.now == nil || (*o.now).version != version {
		return errors.New("the API server says nothing of the kind")
	}
	return nil
}

// replica is one of several processes over one state.
type replica struct {
	*works
	objects *objects
	runner  *Runner
	keeper  *prune.Keeper
	planner *plan.Planner
}

// newReplicas returns two over the state of w, of which the second is about to be cut off from the API server. Both have read web, which
// has run.
func newReplicas(w *works, now **object) (a, b *replica) {
	w.run(nil)
	w.repository.Commit("first", map[string]string{"old/text": "old", "new/text": "new"})
	open := func() *replica {
		o := &objects{url: w.repository.URL, seen: *now, now: now}
		c, err := catalog.OpenAll(w.t.Context(), []catalog.Origin{{Objects: o}}, false, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		options, log := w.runner.Options, slog.New(slog.DiscardHandler)
		options.Catalog = c
		options.Remover = &prune.Remover{Catalog: c, Store: options.Store, Queue: options.Queue, Targets: options.Targets, Version: "1", Log: log}
		planner := &plan.Planner{Catalog: c, Fetcher: options.Fetcher, Builder: options.Builder, Store: options.Store, Queue: options.Queue, Log: log}
		keeper := &prune.Keeper{Catalog: c, Store: options.Store, Queue: options.Queue, MaxShare: 50, Log: log}
		return &replica{w, o, New(options), keeper, planner}
	}
	a, b = open(), open()
	a.look()
	b.look()
	a.interval()
	a.work()
	if got := w.published(); got != "old" {
		w.t.Fatalf("at first %q is published", got)
	}
	b.objects.cut = true
	return a, b
}

// look reads the objects and has the keeper look at them.
func (r *replica) look() {
	r.t.Helper()
	if _, err := r.runner.Catalog.Reload(); (err != nil) != r.objects.cut {
		r.t.Fatal(err)
	}
	for range 2 {
		if err := errors.Join(r.keeper.Check(r.t.Context()), r.runner.Store.Sync(r.t.Context())); err != nil {
			r.t.Fatal(err)
		}
	}
}

// interval plans as the timer does.
func (r *replica) interval() {
	r.t.Helper()
	if err := r.planner.Consider(r.t.Context(), []string{"shop/web"}, plan.Cause{ID: "interval", Reason: "interval", Since: time.Now(), Drift: true, Now: true}); err != nil {
		r.t.Fatal(err)
	}
}

// pending reports whether a job waits.
func (r *replica) pending() bool {
	r.t.Helper()
	pending, err := r.runner.Queue.Pending(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return pending["shop/web"]
}

// work does the jobs that there are.
func (r *replica) work() {
	r.t.Helper()
	ctx, stop := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() {
		done <- r.runner.Queue.Work(ctx, 1, func(ctx context.Context, job queue.Job) error {
			if _, ok := r.runner.Catalog.Get(job.Pipeline); !ok {
				_, err := r.runner.Remover.Remove(ctx, job)
				return err
			}
			return r.runner.Do(ctx, job)
		})
	}()
	for r.pending() {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	if err := <-done; err != nil {
		r.t.Fatal(err)
	}
}

// try has the replica do a job that was planned long ago, and reports whether it gives it back.
func (r *replica) try() (again bool) {
	r.t.Helper()
	err := r.runner.Do(r.t.Context(), queue.Job{Pipeline: "shop/web", Cause: "old", Since: time.Now().Add(-time.Hour), Force: true})
	var retry *queue.RetryError
	if again = errors.As(err, &retry); err != nil && !again {
		r.t.Fatal(err)
	}
	return again
}

// published returns the text that is published, "" where none is.
func (w *works) published() string {
	if !strings.Contains(w.repository.Git("ls-tree", "-r", "--name-only", "rendered"), "configmap-x.yaml") {
		return ""
	}
	_, text, _ := strings.Cut(w.repository.Git("grep", "-h", "text:", "rendered"), "text: ")
	return text
}

func webOf(uid string, generation int64, path string) *object {
	return &object{queue.ObjectVersion{UID: uid, Generation: generation}, path}
}

// TestAReplicaThatIsCutOffPublishesNoOlderDefinition has one of two replicas see that a pipeline was changed, or made anew.
func TestAReplicaThatIsCutOffPublishesNoOlderDefinition(t *testing.T) {
	for name, changed := range map[string]*object{"changed": webOf("1", 2, "new"), "made anew": webOf("2", 1, "new")} {
		t.Run(name, func(t *testing.T) {
			now := webOf("1", 1, "old")
			a, b := newReplicas(newWorks(t), &now)
			now = changed
			a.objects.seen = now
			a.look()
			if b.look(); !b.try() { // before the new one has run
				t.Error("it does a job with the old definition")
			}
			a.interval()
			a.work()
			b.look()
			if b.interval(); b.pending() {
				t.Error("it plans the old definition")
			}
			if again := b.try(); !again || a.published() != "new" {
				t.Errorf("it gives the job back: %v; published is %q", again, a.published())
			}
			b.objects.cut, b.objects.seen = false, now
			if b.look(); b.try() {
				t.Error("it does not take part again")
			}
		})
	}
}

// TestADefinitionThatIsBackIsPublished has the API server itself go back to what it had before, as after the restore of a backup of etcd.
func TestADefinitionThatIsBackIsPublished(t *testing.T) {
	now := webOf("1", 1, "old")
	a, _ := newReplicas(newWorks(t), &now)
	for _, one := range []*object{webOf("1", 7, "new"), webOf("1", 1, "old")} {
		now, a.objects.seen = one, one
		a.look()
		a.interval()
		a.work()
		if got := a.published(); got != one.path {
			t.Errorf("published is %q, want %q", got, one.path)
		}
	}
}

// TestAReplicaThatIsCutOffBringsNoPipelineBack has one of two replicas see that a pipeline was deleted. What it had published stays away
// until the API server says that it is there.
func TestAReplicaThatIsCutOffBringsNoPipelineBack(t *testing.T) {
	now := webOf("1", 1, "old")
	a, b := newReplicas(newWorks(t), &now)
	before := now
	now, a.objects.seen, a.objects.deleted = nil, nil, before
	a.look()
	if b.look(); !b.try() { // before it is removed
		t.Error("it does a job of a pipeline that is being deleted")
	}
	a.work()
	a.objects.deleted = nil
	b.look()
	if _, registered := b.runner.Store.Registration("shop/web"); registered {
		t.Error("it registers what was deleted")
	}
	if b.interval(); b.pending() {
		t.Error("it plans what was deleted")
	}
	if again := b.try(); !again || a.published() != "" {
		t.Errorf("it gives the job back: %v; published is %q", again, a.published())
	}
	now, b.objects.cut = before, false
	b.look()
	b.interval()
	b.work()
	if got := a.published(); got != "old" {
		t.Errorf("one that is there again publishes %q", got)
	}
}
