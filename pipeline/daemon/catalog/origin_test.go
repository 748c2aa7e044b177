// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/secret/tenant"
)

// twoTeams are repositories of two teams, each on a server of its own, and what is registered of their pipelines.
type twoTeams struct {
	shop, evil         *gittest.Repository
	shopAway, evilAway atomic.Bool
	heads              map[string]*heads
	registered         map[string][]v1alpha1.Publish
}

func newTwoTeams(t *testing.T) *twoTeams {
	t.Helper()
	w := &twoTeams{heads: map[string]*heads{"shop": {}, "evil": {}}, registered: map[string][]v1alpha1.Publish{}}
	server := func(away *atomic.Bool, name string) *gittest.Repository {
		s := gittest.New(t)
		s.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
			if away.Load() {
				http.Error(w, "away", http.StatusServiceUnavailable)
			}
			return away.Load()
		})
		return s.Repository(t, name)
	}
	w.shop, w.evil = server(&w.shopAway, "shop"), server(&w.evilAway, "evil")
	return w
}

// open is a process that starts with a state directory.
func (w *twoTeams) open(t *testing.T, state string, worker bool) (*Catalog, error) {
	t.Helper()
	var from []Origin
	for _, one := range []struct {
		name string
		r    *gittest.Repository
	}{{"evil", w.evil}, {"shop", w.shop}} {
		bound, err := tenant.New(".", []string{one.name}, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		repository := place(t, one.r, w.heads[one.name], "", state)
		from = append(from, Origin{Name: one.name, Repository: &repository, Tenants: []tenant.Tenant{bound}})
	}
	return OpenAll(t.Context(), from, worker, nil, WithRules(Rules{
		Registered: func(pipeline string) []v1alpha1.Publish { return w.registered[pipeline] },
		Names: func() (names []string) {
			for name := range w.registered {
				names = append(names, name)
			}
			return names
		},
	}))
}

func (w *twoTeams) mustOpen(t *testing.T, state string) *Catalog {
	t.Helper()
	c, err := w.open(t, state, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range c.All() {
		if e.Err == nil {
			w.registered[e.Key] = e.Pipeline.Spec.Publish
		}
	}
	return c
}

// TestPathsBelongToOnePipelineAcrossRepositories: who was there first keeps its path, whichever repository is read first, over restarts,
// and also while its own repository cannot be read and nothing is left of it.
func TestPathsBelongToOnePipelineAcrossRepositories(t *testing.T) {
	w := newTwoTeams(t)
	w.shop.Commit("first", map[string]string{"web.yaml": publishing("shop", "web", "https://h/out.git", "rendered", "web", "")})
	w.evil.Commit("first", map[string]string{"a.yaml": publishing("evil", "a", "https://h/out.git", "rendered", "a", "")})
	state := t.TempDir()
	c := w.mustOpen(t, state)
	w.evil.Commit("takes it", map[string]string{
		"b.yaml": publishing("evil", "a-first-by-name", "https://h/out.git", "rendered", "web/deep", ""),
		"c.yaml": publishing("shop", "web", "https://h/out.git", "rendered", "stolen", ""),
	})
	check := func(step string, c *Catalog, shop bool) {
		t.Helper()
		if e, ok := c.Get("shop/web"); ok != shop || ok && (e.Err != nil || e.File != "shop:web.yaml") {
			t.Errorf("%s: the first one is %+v", step, e)
		}
		e, ok := c.Get("evil/a-first-by-name")
		if !ok || e.Err == nil || !strings.Contains(e.Err.Error(), "spec.publish[0].git.path") || strings.Contains(e.Err.Error(), "shop") {
			t.Errorf("%s: the second one is %+v", step, e)
		}
		if e, ok := c.Get("evil:c.yaml#shop/web"); !ok || e.Err == nil || !strings.Contains(e.Err.Error(), "metadata.namespace: must be evil for pipelines in this repository") {
			t.Errorf("%s: the one with the other's name is %+v", step, e)
		}
		if e, ok := c.Get("evil/a"); !ok || e.Err != nil {
			t.Errorf("%s: the other one is %+v", step, e)
		}
	}
	if _, err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("after a push", c, true)
	check("after a restart", w.mustOpen(t, state), true)
	w.shopAway.Store(true)
	check("started while the first repository is away", w.mustOpen(t, state), true)
	c = w.mustOpen(t, t.TempDir())
	check("and with an empty state directory", c, false)
	w.shopAway.Store(false)
	if _, err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("when it is back", c, true)
}

// TestOneRepositoryThatCannotBeReadStopsNoOther: the others are read and followed, and its own pipelines stay as they were.
func TestOneRepositoryThatCannotBeReadStopsNoOther(t *testing.T) {
	w := newTwoTeams(t)
	w.shop.Commit("first", map[string]string{"web.yaml": publishing("shop", "web", "https://h/out.git", "rendered", "web", "")})
	w.evil.Commit("first", map[string]string{"a.yaml": publishing("evil", "a", "https://h/out.git", "rendered", "a", "")})
	c := w.mustOpen(t, t.TempDir())
	worker, err := w.open(t, t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	w.evilAway.Store(true)
	w.evil.Commit("second", map[string]string{"b.yaml": publishing("evil", "b", "https://h/out.git", "rendered", "b", "")})
	w.shop.Commit("second", map[string]string{"api.yaml": publishing("shop", "api", "https://h/out.git", "rendered", "api", "")})
	changed, err := c.Refresh(t.Context())
	if diff := cmp.Diff([]string{"shop/api"}, changed); diff != "" || err == nil {
		t.Errorf("error %v, changed %s", err, diff)
	}
	for key, want := range map[string]bool{"evil/a": true, "evil/b": false, "shop/web": true, "shop/api": true} {
		if e, ok := c.Get(key); ok != want || e.Err != nil {
			t.Errorf("%s: %v, %v", key, ok, e.Err)
		}
	}
	for pipeline, broken := range map[string]bool{"evil/a": true, "shop/web": false, "shop/api": false} {
		if s, ok := c.StatusOf(pipeline); !ok || (s.Error != "") != broken {
			t.Errorf("the place of %s: %+v", pipeline, s)
		}
	}
	if s, ok := c.StatusOf("other/x"); ok {
		t.Errorf("a pipeline that nobody has is of %+v", s)
	}
	if s := c.Status(); !strings.HasPrefix(s.Error, "evil: ") || s.Pipelines != 3 {
		t.Errorf("in all: %+v", s)
	}
	for namespace, want := range map[string]bool{"evil": false, "shop": true} {
		if got := c.IsReadable(func(one string) bool { return one == namespace }); got != want {
			t.Errorf("for %s it is readable: %v", namespace, got)
		}
	}

	// Both have moved, which the worker has not heard of yet. For a job of one team it does not ask the other's server.
	w.evilAway.Store(false)
	if _, err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.evilAway.Store(true)
	if err := worker.Follow(t.Context(), "shop/api"); err != nil {
		t.Error(err)
	}
	if _, ok := worker.Get("shop/api"); !ok {
		t.Error("the worker has other pipelines")
	}
	if err := worker.Follow(t.Context(), "evil/b"); err == nil {
		t.Error("the worker does a job with pipelines that it could not read")
	}
	w.shopAway.Store(true)
	if _, err := w.open(t, t.TempDir(), false); err == nil {
		t.Error("began without any pipelines")
	}
}
