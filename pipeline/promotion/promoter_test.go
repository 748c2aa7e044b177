// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/storetest"
)

// newPromoter is one over pipelines by their names, with their labels wave, and no host.
func newPromoter(t *testing.T, pullRequest string, waves map[string]string) *Promoter {
	t.Helper()
	requests := map[string]string{}
	for name := range waves {
		requests[name] = pullRequest
	}
	return newPromoterOf(t, requests, waves)
}

// newPromoterOf is one over pipelines with pull requests of their own, by NAMESPACE/NAME or NAME.
func newPromoterOf(t *testing.T, pullRequests, waves map[string]string) *Promoter {
	t.Helper()
	dir := t.TempDir()
	for key, pullRequest := range pullRequests {
		namespace := ""
		if of, _, ok := strings.Cut(key, "/"); ok {
			namespace = of
		}
		name := path.Base(key)
		text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s, namespace: %q, labels: {wave: %s}}\nspec:\n"+
			"  source: {git: {url: https://git.example.com/apps.git, ref: {branch: main}}}\n  build: {path: %[1]s}\n"+
			"  publish: [{git: {branch: rendered, pullRequest: {provider: Gitea, secretRef: {name: bot}, %[4]s}}}]\n", name, namespace, waves[key], pullRequest)
		if err := os.WriteFile(filepath.Join(dir, namespace+name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := catalog.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	q, store := storetest.Open(t)
	return &Promoter{Catalog: c, Store: store, Queue: q, Log: slog.New(slog.DiscardHandler)}
}

// waits has a result of a pipeline wait in a pull request.
func waits(t *testing.T, p *Promoter, pipeline string, number int64) {
	t.Helper()
	e, ok := p.Catalog.Get(pipeline)
	if !ok || e.Err != nil {
		t.Fatalf("%s: %v", pipeline, e.Err)
	}
	to := e.Pipeline.Spec.Publish[0]
	state, revision, err := p.Store.Load(t.Context(), pipeline)
	if err != nil {
		t.Fatal(err)
	}
	state.Status.Published = []v1alpha1.Published{{Target: to.Target(), PullRequest: &v1alpha1.PullRequestStatus{
		Number: number, State: v1alpha1.PullRequestOpen, Head: to.Git.PullRequest.Head, HeadCommit: "c1",
	}}}
	if _, err := p.Store.Save(t.Context(), pipeline, state, revision); err != nil {
		t.Fatal(err)
	}
	if err := p.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestPromoteAsksForRolesFirst has a pipeline on hold whose result waits together with that of others.
func TestPromoteAsksForRolesFirst(t *testing.T) {
	p := newPromoter(t, "groupBy: Label, label: wave", map[string]string{"a": "x", "b": "x"})
	waits(t, p, "a", 1)
	waits(t, p, "b", 1)
	if err := p.Hold(t.Context(), []string{"a"}, "ann", ""); err != nil {
		t.Fatal(err)
	}
	if err := p.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	denied := errors.New("not yours")
	done, err := p.Promote(t.Context(), []string{"a"}, "ann", "token", func(name string) error {
		if name == "b" {
			return denied
		}
		return nil
	})
	if !errors.Is(err, denied) || len(done.Released)+len(done.Groups) > 0 || !errors.Is(p.Store.CheckHold("a"), status.ErrOnHold) {
		t.Fatalf("got %+v, %v; the hold: %v", done, err, p.Store.CheckHold("a"))
	}
	done, err = p.Promote(t.Context(), []string{"a"}, "ann", "token", func(string) error { return nil })
	if err != nil || len(done.Released) != 1 || len(done.Groups) != 1 {
		t.Fatalf("got %+v, %v", done, err)
	}
	if err := p.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The request is there, whoever dies before the queue has it.
	if c := p.Store.Control("a"); c.OnHold != nil || c.RequestedAt != "token" || !c.Force {
		t.Errorf("got %+v", c)
	}
}

// TestWhatIsHeldIsAskedForAfterACrash ends a train and dies before the pipelines that had to wait were asked to run.
func TestWhatIsHeldIsAskedForAfterACrash(t *testing.T) {
	p := newPromoter(t, "groupBy: Label, label: wave, waves: {order: [dev, prod]}", map[string]string{"a": "dev", "b": "prod"})
	units, _ := p.unitsAndGroups()
	u := units[0]
	if err := p.Store.ChangeTrain(t.Context(), u.key, func(train *status.Train) bool { *train = status.Train{Revision: "r1", Held: true}; return true }); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("killed")
	asked := 0
	for _, failure := range []error{lost, nil} {
		p.Consider = func(context.Context, []string, string) error { asked++; return failure }
		if err := p.Store.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := &step{p: p, u: u, train: p.Store.Train(u.key)}
		s.stages = make([]Stage, 2)
		if !s.hasWork() {
			t.Fatal("nobody asks for what is held")
		}
		if err := s.moveTrain(t.Context(), []Verdict{{State: StageDone}, {State: StageDone}}); !errors.Is(err, failure) {
			t.Fatal(err)
		}
	}
	if err := p.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if train := p.Store.Train(u.key); train.Held || train.Revision != "" || asked != 3 {
		t.Errorf("got %+v, asked %d times", train, asked)
	}
}

// TestNothingIsDecidedBeforeAllHaveLookedAtARevision begins a train, and counts who is asked to look.
func TestNothingIsDecidedBeforeAllHaveLookedAtARevision(t *testing.T) {
	p := newPromoter(t, "groupBy: Label, label: wave, waves: {order: [dev, prod]}", map[string]string{"a": "dev", "b": "prod"})
	var asked []string
	p.Consider = func(_ context.Context, pipelines []string, _ string) error {
		asked = append(asked, pipelines...)
		return nil
	}
	units, _ := p.unitsAndGroups()
	u := units[0]
	begin := func(revision string) *step {
		t.Helper()
		err := p.Store.ChangeTrain(t.Context(), u.key, func(train *status.Train) bool {
			_, changed := admitToTrain(train, revision, time.Now())
			return changed
		})
		if err == nil {
			err = p.Store.Sync(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return &step{p: p, u: u, train: p.Store.Train(u.key)}
	}
	for i, revision := range []string{"r1", "r2"} {
		s := begin(revision)
		if !s.isUnseen() {
			t.Fatalf("%s is decided about at once", revision)
		}
		if err := s.observeDecideAct(t.Context()); err != nil || len(asked) != 2*(i+1) {
			t.Fatalf("asked %q, %v", asked, err)
		}
	}
	if s := begin("r1"); s.isUnseen() { // sources that differ must not have them look again and again
		t.Errorf("got %+v", s.train)
	}
}

// TestPipelinesThatShareAHeadAgreeOnItsMerge has a pipeline of another team, first by its name, name the head of team b.
func TestPipelinesThatShareAHeadAgreeOnItsMerge(t *testing.T) {
	const alone, all = "prerig/rendered/shared", "waves: {order: [dev, prod]}, groupBy: Label, label: wave"
	for name, tc := range map[string]struct {
		a, b, waveOfA, head string
		merge               v1alpha1.MergePolicy
		when                string
	}{
		"alike":       {a: "groupBy: All, head: HEAD, merge: WhenGreen", b: "groupBy: All, head: HEAD, merge: WhenGreen", merge: v1alpha1.MergeWhenGreen, when: "Merge [] 0s 0 [] []"},
		"people":      {a: "groupBy: All, head: HEAD, merge: WhenGreen", b: "groupBy: All, head: HEAD", merge: v1alpha1.MergeManual, when: "Merge [] 0s 0 [] []"},
		"people of a": {a: "groupBy: All, head: HEAD", b: "groupBy: All, head: HEAD, merge: WhenGreen", merge: v1alpha1.MergeManual, when: "Merge [] 0s 0 [] []"},
		"what each asks for": {
			a:     "groupBy: All, head: HEAD, merge: WhenGreen, mergeWhen: {method: Squash, statuses: [ci], greenFor: 1m, approvals: 1, after: [{group: prerig/rendered/pipeline/a_y}]}",
			b:     "groupBy: All, head: HEAD, merge: WhenGreen, mergeWhen: {statuses: [ci, e2e], greenFor: 5m, approvals: 2, freeze: [{days: [Fri]}]}",
			merge: v1alpha1.MergeWhenGreen, when: "Merge [ci e2e] 5m0s 2 [prerig/rendered/pipeline/a_y] [Fri UTC]",
		},
		"a wave": {
			a: all + ", merge: WhenGreen", b: all + ", merge: WhenGreen, mergeWhen: {approvals: 2}", waveOfA: "dev", head: "prerig/rendered/label/wave/prod",
			merge: v1alpha1.MergeWhenGreen, when: "Merge [] 0s 2 [] []",
		},
		"the head of a wave": {
			a: "groupBy: All, head: HEAD, merge: WhenGreen", b: all + ", merge: WhenGreen", head: "prerig/rendered/label/wave/prod", merge: v1alpha1.MergeManual, when: "Merge [] 0s 0 [] []",
		},
	} {
		head := cmp.Or(tc.head, alone)
		p := newPromoterOf(t, map[string]string{"a/x": strings.ReplaceAll(tc.a, "HEAD", head), "b/shop": strings.ReplaceAll(tc.b, "HEAD", head)},
			map[string]string{"a/x": cmp.Or(tc.waveOfA, "none"), "b/shop": "prod"})
		units, _ := p.unitsAndGroups()
		found := false
		for _, u := range units {
			for _, g := range u.groups {
				if g.head != head {
					continue
				}
				found = true
				s := g.knownStage(status.Group{}, nil, time.Now())
				var after []string
				for _, one := range s.When.After {
					after = append(after, one.Group)
				}
				when := fmt.Sprint(cmp.Or(s.When.Method, "Merge"), " ", s.When.Statuses, " ", lengthOf(s.When.GreenFor), " ", s.When.Approvals, " ", after, " ", s.When.Freeze)
				if s.Merge != tc.merge || when != tc.when {
					t.Errorf("%s: %s, %s, want %s, %s", name, s.Merge, when, tc.merge, tc.when)
				}
			}
		}
		if !found {
			t.Errorf("%s: there is no group of %s", name, head)
		}
	}
}

// TestWavesAskForWhatEachAsksFor has pipelines of the same waves that differ in what is waited for.
func TestWavesAskForWhatEachAsksFor(t *testing.T) {
	const order = "groupBy: Label, label: wave, waves: {order: [dev, prod]"
	p := newPromoterOf(t, map[string]string{"a/x": order + ", greenFor: 1m}", "b/shop": order + ", statuses: [flux], greenFor: 1h}"}, map[string]string{"a/x": "dev", "b/shop": "prod"})
	units, _ := p.unitsAndGroups()
	if len(units) != 1 || fmt.Sprint(units[0].waves.Statuses, lengthOf(units[0].waves.GreenFor)) != "[flux] 1h0m0s" {
		t.Errorf("got %d units, the first with %+v", len(units), units[0].waves)
	}
}
