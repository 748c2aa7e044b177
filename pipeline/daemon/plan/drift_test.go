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

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// TestASlowLookAtWhatIsPublishedHoldsUpNoEvent: the server that is published to answers only after an event about the source was planned.
// That the look takes long says nothing about the source.
func TestASlowLookAtWhatIsPublishedHoldsUpNoEvent(t *testing.T) {
	b := newBed(t, 1, branches)
	b.publishesTo(0, b.git.Repository(t, "slow"))
	begun, planned := make(chan struct{}, 99), make(chan struct{})
	b.git.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/slow.git/") {
			begun <- struct{}{}
			<-planned
		}
		return false
	})
	var looks sync.WaitGroup
	looks.Go(func() {
		if err := b.planner.Consider(t.Context(), []string{name(0)}, plan.Cause{ID: "interval", Since: time.Now(), Drift: true}); err != nil {
			t.Error(err)
		}
	})
	<-begun
	if err := b.planner.Event(t.Context(), b.event("none"), time.Now()); err != nil {
		t.Fatal(err)
	}
	if pending, err := b.queue.Pending(t.Context()); err != nil || len(pending) > 0 {
		t.Errorf("an event that touches nothing asks for %v, %v", pending, err)
	}
	close(planned)
	looks.Wait()
}

// publishesTo has a pipeline publish to another repository.
func (b *bed) publishesTo(i int, other *gittest.Repository) {
	b.t.Helper()
	if other.Git("branch", "--list", "main") == "" {
		other.Commit("first", map[string]string{"x": "1"})
	}
	b.write(b.pipelines, name(i)+".yaml", strings.Replace(branches(i, b.repository.URL), "branch: rendered", "url: "+other.URL+", branch: main", 1)+"  interval: 1s\n")
	b.reload()
	e, _ := b.planner.Catalog.Get(name(i))
	b.rendered(e)
	b.change(name(i), func(s *status.State) {
		s.Seen.Targets = map[string]tree.Record{e.Pipeline.Spec.Publish[0].Target(): {{Op: tree.OpRead, Path: "x", Outcome: git.BlobHash([]byte("1")).String()}}}
	})
}

// TestATargetThatDoesNotAnswerHoldsUpNoInterval has the timer look at what is published on a server that does not answer, while another
// source has a new commit.
func TestATargetThatDoesNotAnswerHoldsUpNoInterval(t *testing.T) {
	b := newBed(t, 1, branches)
	silent, other := b.git.Repository(t, "silent"), b.git.Repository(t, "other")
	other.Commit("first", map[string]string{"apps/" + name(1) + "/kustomization.yaml": "resources: [app.yaml]\n"})
	begun := make(chan struct{}, 99)
	var hangs atomic.Int32
	b.publishesTo(0, silent)
	b.git.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/silent.git/") {
			hangs.Add(1)
			begun <- struct{}{}
			<-r.Context().Done()
		}
		return false
	})
	ctx, cancel := context.WithCancel(t.Context())
	timer := make(chan struct{})
	go func() {
		defer close(timer)
		b.planner.Timer(ctx)
	}()
	t.Cleanup(func() { cancel(); <-timer })
	<-begun
	b.write(b.pipelines, name(1)+".yaml", branches(1, other.URL)+"  interval: 1s\n")
	b.reload() // never rendered: due once in a second
	deadline := time.Now().Add(15 * time.Second)
	for {
		pending, err := b.queue.Pending(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if pending[name(1)] {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was planned for the other source while the server does not answer")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if n := hangs.Load(); n != 1 {
		t.Errorf("what is looked at still was looked at %d times", n)
	}
}

// TestATargetThatDidNotAnswerIsNotAskedAgain looks at what two pipelines have on a server that does not answer, and does so once more.
func TestATargetThatDidNotAnswerIsNotAskedAgain(t *testing.T) {
	b := newBed(t, 2, branches)
	silent := b.git.Repository(t, "silent")
	b.publishesTo(0, silent)
	b.publishesTo(1, silent)
	var asked atomic.Int32
	b.git.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/silent.git/") {
			asked.Add(1)
			<-r.Context().Done()
		}
		return false
	})
	b.planner.WaitForTargets(200 * time.Millisecond)
	for range 2 {
		if err := b.planner.Consider(t.Context(), []string{name(0), name(1)}, plan.Cause{ID: "interval", Since: time.Now(), Drift: true}); err != nil {
			t.Fatal(err)
		}
	}
	if n := asked.Load(); n > 1 {
		t.Errorf("the server is asked %d times", n)
	}
}

// TestWhatSomebodyElseHasChangedIsRenderedAgain looks at the branches of three pipelines, of which one proposes.
func TestWhatSomebodyElseHasChangedIsRenderedAgain(t *testing.T) {
	b := newBed(t, 3, func(i int, url string) string {
		if i == 2 {
			return strings.Replace(branches(i, url), "branch: rendered", "branch: env, propose: {}", 1)
		}
		return branches(i, url)
	})
	files := map[string]string{name(0) + "/x.yaml": "zero\n", name(1) + "/x.yaml": "one\n", "x.yaml": "two\n"}
	b.repository.InWork("checkout", "-q", "--orphan", "rendered")
	b.repository.Commit("rendered", files)
	b.repository.InWork("push", "-q", "origin", "HEAD:env-next")
	written := func() {
		for i, e := range b.planner.Catalog.All() {
			path, text := name(i)+"/x.yaml", files[name(i)+"/x.yaml"]
			if i == 2 {
				path, text = "x.yaml", files["x.yaml"]
			}
			record := tree.Record{{Op: tree.OpRead, Path: path, Outcome: git.BlobHash([]byte(text)).String()}}
			b.change(e.Key, func(s *status.State) {
				s.Seen.Targets = map[string]tree.Record{e.Pipeline.Spec.Publish[0].Target(): record}
			})
		}
	}
	looks := 0
	b.git.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			looks++
		}
		return false
	})
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"as it was", func() {}, nil},
		{"once more", func() {}, nil},
		{"a file of others", func() { b.repository.Commit("more", map[string]string{"README.md": "x"}) }, nil},
		{"a file of one", func() { b.repository.Commit("edited", map[string]string{name(1) + "/x.yaml": "mine\n"}) }, []string{name(1)}},
		{"a file is gone", func() { b.repository.Commit("removed", map[string]string{name(0) + "/x.yaml": ""}) }, []string{name(0), name(1)}},
		{"what is proposed", func() {
			b.repository.Commit("proposal", map[string]string{"x.yaml": "mine\n"})
			b.repository.InWork("push", "-q", "origin", "HEAD:env-next")
		}, []string{name(0), name(1), name(2)}},
		{"a proposal that is merged", func() { b.repository.Git("branch", "-D", "env-next") }, []string{name(0), name(1)}},
		{"the branch is gone", func() { b.repository.Git("branch", "-D", "rendered") }, []string{name(0), name(1)}},
	} {
		step.do()
		written()
		looks = 0
		if err := b.planner.Consider(t.Context(), []string{name(0), name(1), name(2)}, plan.Cause{ID: step.name, Since: time.Now(), Drift: true}); err != nil {
			t.Fatal(err)
		}
		// One for the source and all branches, and for each branch one that brings a new commit.
		if looks > 3 || len(step.want) == 0 && step.name == "once more" && looks > 1 {
			t.Errorf("%s: the server is asked %d times", step.name, looks)
		}
		if len(step.want) > 0 {
			if job := b.nextJob(); !job.Drift || job.Force {
				t.Errorf("%s: the job of %s does not look for drift, or renders whatever it finds", step.name, job.Pipeline)
			}
		}
		if diff := cmp.Diff(step.want, b.asked(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}
