// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// nextJob returns the only job in the queue and leaves it there.
func (b *bed) nextJob() (found queue.Job) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	if err := b.queue.Work(ctx, 1, func(_ context.Context, j queue.Job) error {
		found = j
		cancel()
		return &queue.RetryError{Err: context.Canceled}
	}); err != nil {
		b.t.Fatal(err)
	}
	return found
}

// TestAJobNamesARevisionOnlyWhereNoRunCanHaveSeenMore: a run that is under way may publish what is newer than the planner's
// look, and be killed before its state says so.
func TestAJobNamesARevisionOnlyWhereNoRunCanHaveSeenMore(t *testing.T) {
	b := newBed(t, 1, branches)
	state, _, err := b.store.Load(t.Context(), name(0))
	if err != nil {
		t.Fatal(err)
	}
	rendered := state.Seen.Resolved
	for i, text := range []string{"kind: Service\n", "kind: Secret\n"} {
		head := b.repository.Commit(text, map[string]string{"apps/" + name(0) + "/app.yaml": text})
		if err := b.planner.Event(t.Context(), b.event(head), time.Now()); err != nil {
			t.Fatal(err)
		}
		want := "main@sha1:" + head
		if i > 0 {
			want = ""
		}
		got := b.nextJob()
		if got.Revision != want || want != "" && !got.Rendered.Equal(rendered) {
			t.Errorf("job %d: revision %q of a look after the render at %s, want %q and %s", i, got.Revision, got.Rendered, want, rendered)
		}
	}
}

// TestAJobThatWaitedForASlowSourceNamesNoOldRevision: while a plan waits for the answer of another source, what it has found is
// reverted. The plan for that finds that nothing needs to run, so the first one's job must not bring it back.
func TestAJobThatWaitedForASlowSourceNamesNoOldRevision(t *testing.T) {
	b := newBed(t, 1, branches)
	b.planner.WaitForBatch(time.Hour) // the first plan's job waits for the slow source, however long the revert takes
	slow := b.git.Repository(t, "slow")
	slow.Commit("first", map[string]string{"x": "1"})
	b.write(b.pipelines, "slow.yaml", branches(1, slow.URL))
	b.reload()
	waiting, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b.git.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/slow.git/") {
			once.Do(func() { close(waiting) })
			<-answer
		}
		return false
	})
	file := "apps/" + name(0) + "/app.yaml"
	before := b.repository.Git("show", "main:"+file) + "\n"
	changed := b.repository.Commit("change", map[string]string{file: "kind: Service\n"})
	var first sync.WaitGroup
	first.Go(func() {
		cause := plan.Cause{ID: changed, Since: time.Now()}
		if err := b.planner.Consider(t.Context(), []string{name(0), name(1)}, cause); err != nil {
			t.Error(err)
		}
	})
	<-waiting
	for !b.planner.HasLooked(name(0)) {
		time.Sleep(time.Millisecond)
	}
	reverted := b.repository.Commit("revert", map[string]string{file: before})
	if err := b.planner.Event(t.Context(), b.event(reverted), time.Now()); err != nil {
		t.Fatal(err)
	}
	if pending, err := b.queue.Pending(t.Context()); err != nil || len(pending) > 0 {
		t.Fatalf("the revert asks for %v, %v", pending, err)
	}
	close(answer)
	first.Wait()
	jobs := b.jobs(2)
	if got := jobs[name(0)]; got.Pipeline == "" || got.Revision != "" {
		t.Errorf("the first plan asks for %+v", got)
	}
	if got := jobs[name(1)]; got.Revision == "" {
		t.Errorf("of the slow source: %+v", got)
	}
}

// TestAPlanThatLooksAfterAnotherHasAskedSeesItsJob: two plans overlap. The later one begins while the queue is empty, but looks at the source
// only after the other one has asked for a run with what it has found; meanwhile that was reverted. The later plan finds the source
// as the state says, and the run must not be believed that there is something else.
func TestAPlanThatLooksAfterAnotherHasAskedSeesItsJob(t *testing.T) {
	b := newBed(t, 1, branches)
	slow := b.git.Repository(t, "slow")
	slow.Commit("first", map[string]string{"x": "1"})
	b.write(b.pipelines, "slow.yaml", branches(1, slow.URL))
	b.reload()
	answer, looks, look := make(chan struct{}), make(chan struct{}, 9), make(chan struct{})
	var later atomic.Bool
	b.git.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.Contains(r.URL.Path, "/slow.git/"):
			<-answer // the first plan asks for the run of the other source after it has waited for this one for a while
		case later.Load():
			looks <- struct{}{}
			<-look
		}
		return false
	})
	file := "apps/" + name(0) + "/app.yaml"
	before := b.repository.Git("show", "main:"+file) + "\n"
	changed := b.repository.Commit("change", map[string]string{file: "kind: Service\n"})
	var plans sync.WaitGroup
	plans.Go(func() {
		if err := b.planner.Consider(t.Context(), []string{name(0), name(1)}, plan.Cause{ID: changed, Since: time.Now()}); err != nil {
			t.Error(err)
		}
	})
	for !b.planner.HasLooked(name(0)) {
		time.Sleep(time.Millisecond)
	}
	reverted := b.repository.Commit("revert", map[string]string{file: before})
	later.Store(true)
	plans.Go(func() {
		if err := b.planner.Event(t.Context(), b.event(reverted), time.Now()); err != nil {
			t.Error(err)
		}
	})
	<-looks
	for pending := map[string]bool{}; !pending[name(0)]; time.Sleep(time.Millisecond) {
		var err error
		if pending, err = b.queue.Pending(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(look)
	close(answer)
	plans.Wait()
	if got := b.jobs(2)[name(0)]; got.Cause != reverted || got.Revision != "" {
		t.Errorf("the job is %+v", got)
	}
}

// jobs returns so many jobs of the queue, by their pipelines.
func (b *bed) jobs(count int) map[string]queue.Job {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	found := map[string]queue.Job{}
	if err := b.queue.Work(ctx, 1, func(_ context.Context, j queue.Job) error {
		found[j.Pipeline] = j
		if len(found) == count {
			cancel()
		}
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	return found
}
