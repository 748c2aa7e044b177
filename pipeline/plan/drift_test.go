// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/prerig/prerig/pipeline/plan"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/pipeline/status"
)

// TestASlowLookAtWhatIsPublishedHoldsUpNoEvent: the server that is published to answers only after an event about the source was planned.
// That the look takes long says nothing about the source.
func TestASlowLookAtWhatIsPublishedHoldsUpNoEvent(t *testing.T) {
	b := newBed(t, 1, branches)
	slow := b.git.Repository(t, "slow")
	slow.Commit("first", map[string]string{"x": "1"})
	b.write(b.pipelines, name(0)+".yaml", strings.Replace(branches(0, b.repository.URL), "branch: rendered", "url: "+slow.URL+", branch: main", 1))
	b.reload()
	e, _ := b.planner.Catalog.Get(name(0))
	b.rendered(e)
	b.change(name(0), func(s *status.State) {
		s.Seen.Targets = map[string]tree.Record{e.Pipeline.Spec.Publish[0].Target(): {{Op: tree.OpRead, Path: "x", Outcome: git.BlobHash([]byte("1")).String()}}}
	})
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
