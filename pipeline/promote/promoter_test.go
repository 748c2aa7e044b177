// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/catalog"
	"github.com/prerig/prerig/pipeline/internal/storetest"
	"github.com/prerig/prerig/pipeline/status"
)

// newPromoter is one over pipelines by their names, with their labels wave, and no host.
func newPromoter(t *testing.T, pullRequest string, waves map[string]string) *Promoter {
	t.Helper()
	dir := t.TempDir()
	for name, wave := range waves {
		text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s, labels: {wave: %s}}\nspec:\n"+
			"  source: {git: {url: https://git.example.com/apps.git, ref: {branch: main}}}\n  build: {path: %[1]s}\n"+
			"  publish: [{git: {branch: rendered, pullRequest: {provider: Gitea, secretRef: {name: bot}, %[3]s}}}]\n", name, wave, pullRequest)
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
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
	units, _ := p.units()
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
	units, _ := p.units()
	u := units[0]
	begin := func(revision string) *step {
		t.Helper()
		err := p.Store.ChangeTrain(t.Context(), u.key, func(train *status.Train) bool { _, changed := admit(train, revision, time.Now()); return changed })
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
		if err := s.run(t.Context()); err != nil || len(asked) != 2*(i+1) {
			t.Fatalf("asked %q, %v", asked, err)
		}
	}
	if s := begin("r1"); s.isUnseen() { // sources that differ must not have them look again and again
		t.Errorf("got %+v", s.train)
	}
}
