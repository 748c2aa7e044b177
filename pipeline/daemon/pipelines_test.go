// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/internal/storetest"
	"github.com/prerig/prerig/pipeline/review/preview"
	"github.com/prerig/prerig/pipeline/secret/tenant"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/git"
)

// hangingHeads are those of a store that does not answer from some time on, whatever a context says.
type hangingHeads struct {
	hang  atomic.Bool
	until chan struct{}
}

func (h *hangingHeads) Head(context.Context) (status.Head, uint64, error) {
	if h.hang.Load() {
		<-h.until
	}
	return status.Head{}, 0, nil
}

func (h *hangingHeads) SaveHead(context.Context, status.Head, uint64) (uint64, error) { return 1, nil }

// TestARepositoryThatHangsHoldsUpNoOtherTeamsJobs leaves a look at one team's pipelines behind, and begins a job of another one.
func TestARepositoryThatHangsHoldsUpNoOtherTeamsJobs(t *testing.T) {
	h := &hangingHeads{until: make(chan struct{})}
	t.Cleanup(func() { close(h.until) })
	repository := &catalog.Repository{URL: "https://git.example.com/a.git", Heads: h, Open: func(context.Context) (*git.Mirror, *git.Remote, error) {
		return nil, nil, errors.New("no answer")
	}}
	c, err := catalog.OpenAll(t.Context(), []catalog.Origin{
		{Name: "a", Repository: repository, Tenants: []tenant.Tenant{{Namespaces: []string{"a"}}}},
		{Name: "b", Dir: t.TempDir(), Tenants: []tenant.Tenant{{Namespaces: []string{"b"}}}},
	}, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &jobRunner{catalog: c, watchdog: &watchdog.Watchdog{Grace: time.Millisecond, Longest: 10 * time.Millisecond}}
	h.hang.Store(true)
	if err := p.followOthers(t.Context(), "a/x"); !errors.Is(err, watchdog.ErrOverdue) {
		t.Fatalf("a repository that hangs gives %v", err)
	}
	p.watchdog.Longest = time.Minute
	if err := p.followOthers(t.Context(), "b/y"); err != nil {
		t.Errorf("a job of another team gets %v", err)
	}
}

// TestAPushToARenderedBranchBesideThePipelinesIsLookedAt has the repository of the pipelines be the one that is published to: a merge of a
// pull request there is looked at at once, as in any other repository.
func TestAPushToARenderedBranchBesideThePipelinesIsLookedAt(t *testing.T) {
	r := gittest.New(t).Repository(t, "all")
	r.Commit("first", map[string]string{"shop/kustomization.yaml": "resources: []\n"})
	dir := t.TempDir()
	text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: shop}\nspec:\n  source: {git: {url: %s, ref: {branch: main}}}\n"+
		"  publish: [{git: {branch: prod, pullRequest: {provider: Gitea, secretRef: {name: bot}}}}]\n", r.URL)
	if err := os.WriteFile(filepath.Join(dir, "shop.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	fetcher := source.New(source.Options{StateDir: t.TempDir()})
	repository := &catalog.Repository{URL: r.URL, Path: "pipelines", Heads: &ownHeads{}, Open: func(ctx context.Context) (*git.Mirror, *git.Remote, error) {
		return fetcher.Repository(ctx, "", r.URL, nil)
	}}
	c, err := catalog.OpenAll(t.Context(), []catalog.Origin{{Name: "files", Dir: dir}, {Name: "git", Repository: repository}}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	q, store := storetest.Open(t)
	planner := &plan.Planner{
		Catalog: c, PipelinesDir: dir, Fetcher: fetcher, Builder: &build.Builder{Version: "test"}, Store: store, Queue: q, Log: slog.New(slog.DiscardHandler),
	}
	p := &planning{
		catalog: c, planner: planner, preview: preview.New(preview.Options{Catalog: c, Store: store, Log: slog.New(slog.DiscardHandler)}),
		log: slog.New(slog.DiscardHandler),
	}
	push := event.Event{ID: "merge", Receiver: "git", Changes: []event.Change{{Git: &event.GitChange{URLs: []string{r.URL}, Ref: "refs/heads/prod"}}}}
	if !c.Concerns(push.Changes) || len(c.Match(push.Changes)) > 0 {
		t.Fatal("the event is not one about the repository of the pipelines and a rendered branch alone")
	}
	if err := p.handleEvent(t.Context(), push, time.Now()); err != nil {
		t.Fatal(err)
	}
	if pending, err := q.Pending(t.Context()); err != nil || !pending["shop"] {
		t.Errorf("to run are %v, %v", pending, err)
	}
}
