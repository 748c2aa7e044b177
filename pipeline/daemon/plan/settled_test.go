// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/source"
)

// policyText is the InjectionPolicy of a cluster, whatever its name.
type policyText string

func (p *policyText) Policy(string, string) ([]byte, error) { return []byte(*p), nil }

// TestJobsLeaveWhatIsKnownOfASource: a pipeline of another source has a job that is never done, as its server is down, and one of this source
// has one that somebody else has asked for. Events go through that one only, and the job is planned once more.
func TestJobsLeaveWhatIsKnownOfASource(t *testing.T) {
	b := newBed(t, 4, branches)
	other := b.git.Repository(t, "other")
	other.Commit("first", map[string]string{"x": "1"})
	b.write(b.pipelines, "other.yaml", branches(4, other.URL))
	b.reload()
	request := func(i int) {
		t.Helper()
		if err := b.queue.Request(t.Context(), queue.Job{Pipeline: name(i), Cause: "earlier"}); err != nil {
			t.Fatal(err)
		}
	}
	look := func() {
		t.Helper()
		commit := b.repository.Commit("docs", map[string]string{"docs/README.md": fmt.Sprint(time.Now())})
		if err := b.planner.Event(t.Context(), b.event(commit), time.Now()); err != nil {
			t.Fatal(err)
		}
		if !b.planner.IsSettled(name(0)) {
			t.Error("nothing is known of the source")
		}
	}
	request(4)
	look()
	request(2)
	look()
	look()
	jobs := b.jobs(2)
	if jobs[name(4)].Cause != "earlier" || jobs[name(2)].Cause == "earlier" || jobs[name(2)].Revision != "" {
		t.Errorf("asked for %+v", jobs)
	}
	look()
	if asked := b.asked(); asked != nil {
		t.Errorf("after all was done %v are asked for", asked)
	}
}

// TestWhatIsRememberedOfASourceKeepsNothingFromRunning has a planner that remembers go through random changes, and another one, which
// knows of nothing, look after it: that finds nothing more to run.
func TestWhatIsRememberedOfASourceKeepsNothingFromRunning(t *testing.T) {
	const n = 6
	pipeline := func(i int, url string) string {
		return branches(i, url) + []string{"  policies: [{file: mesh.yaml}]\n", "  policies: [{name: mesh}]\n", ""}[min(i, 2)]
	}
	b := newBed(t, n, pipeline)
	object := policyText("first")
	b.planner.Builder.Objects = &object
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	whole, less, steps := 0, 0, 120
	for step := range steps {
		app, commit := name(r.IntN(n)), "none"
		text := fmt.Sprint("kind: Deployment\nmetadata: {name: x", r.IntN(3), "}\n")
		what := "nothing"
		switch r.IntN(13) {
		case 0, 1, 2, 3, 4:
			what, commit = "docs", b.repository.Commit("docs", map[string]string{"docs/README.md": fmt.Sprint(step)})
		case 5:
			what, commit = "a file of "+app, b.repository.Commit("app", map[string]string{"apps/" + app + "/app.yaml": text})
		case 6:
			what, commit = "what all share", b.repository.Commit("policy", map[string]string{"policy/policy.yaml": text})
		case 7:
			what = "a policy of the planner's own"
			b.write(b.policies, "mesh.yaml", text)
		case 8:
			what = "a state of " + app
			b.change(app, func(s *status.State) { s.Seen.Outcome, s.Seen.Stage = status.Failed, status.StagePublish })
		case 9:
			what = "suspension of " + app
			b.suspend(app, r.IntN(2) == 0)
		case 10:
			what = "a definition of " + app
			i := r.IntN(n)
			b.write(b.pipelines, name(i)+".yaml", strings.Replace(pipeline(i, b.repository.URL), "metadata: {", fmt.Sprintf("metadata: {labels: {step: %q}, ", fmt.Sprint(step)), 1))
			b.reload()
		case 11:
			what = "a policy of the cluster"
			object = policyText(text)
		}
		snapshot, err := b.planner.Fetcher.Fetch(t.Context(), source.Scope{}, b.planner.Catalog.All()[0].Pipeline.Spec.Source, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := b.store.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		some, all := b.planner.Unsettled(b.event(commit).Changes, snapshot)
		switch {
		case some == all:
			whole++
		case some > 0:
			less++
		}
		if err := b.planner.Event(t.Context(), b.event(commit), time.Now()); err != nil {
			t.Fatal(err)
		}
		found, err := b.queue.Pending(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		other := &plan.Planner{
			Catalog: b.planner.Catalog, PipelinesDir: b.pipelines, Fetcher: b.planner.Fetcher, Builder: b.planner.Builder, Store: b.store, Queue: b.queue,
			Log: b.planner.Log,
		}
		if err := other.Event(t.Context(), b.event(commit), time.Now()); err != nil {
			t.Fatal(err)
		}
		want, err := b.queue.Pending(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, found, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("step %d, %s: %s", step, what, diff)
		}
		b.asked()
	}
	if whole == 0 || less == 0 || whole+less == steps {
		t.Errorf("of %d events %d went through all pipelines and %d through some", steps, whole, less)
	}
}
