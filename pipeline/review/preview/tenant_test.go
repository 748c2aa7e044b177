// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/secret/tenant"
	"github.com/prerig/prerig/pipeline/source"
)

// TestHeadsStayWithinTheSourcesOfTenants: a head that was fetched for one tenant's pipeline is none for another's of the same namespace.
func TestHeadsStayWithinTheSourcesOfTenants(t *testing.T) {
	b := newBed(t, "")
	below := b.server.Repository(t, "pay")
	below.Commit("first", map[string]string{"a": "0"})
	b.repository.InWork("-c", "protocol.file.allow=always", "submodule", "add", "-q", below.Bare, "sub")
	b.repository.InWork("config", "-f", ".gitmodules", "submodule.sub.url", "../"+filepath.Base(below.Bare))
	b.repository.InWork("commit", "-q", "-a", "-m", "with a submodule")
	b.repository.InWork("push", "-q", "origin", "topic")
	in := b.host.in
	in.HeadCommit = strings.TrimSpace(b.repository.InWork("rev-parse", "HEAD"))
	entry := func(allowed string) catalog.Entry {
		e := b.entryOfTenant(allowed)
		e.Pipeline.Spec.Source.Git.Submodules = true
		return e
	}
	r := &rendering{a: &attempt{p: b.Previewer, one: b.one(), in: &in}, heads: map[string]*source.Snapshot{}, bases: map[string]*source.Snapshot{}}
	if err := r.fetchHeadAndBase(t.Context(), entry(b.server.URL+"/*")); err != nil {
		t.Fatal(err)
	}
	if err := r.fetchHeadAndBase(t.Context(), entry(b.repository.URL)); err == nil || !strings.Contains(err.Error(), "pipelines in this repository may not read its repository") {
		t.Errorf("got %v", err)
	}
}

// entryOfTenant returns the pipeline, of a tenant that may read some URLs.
func (b *bed) entryOfTenant(allowed string) catalog.Entry {
	b.Helper()
	one, err := tenant.New(".", []string{"team"}, []string{allowed}, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	c, err := catalog.Open(b.PipelinesDir, nil, catalog.WithRules(catalog.Rules{Tenants: []tenant.Tenant{one}}))
	if err != nil {
		b.Fatal(err)
	}
	e, _ := c.Get(bedKey)
	return e
}

// TestForksStayWithinTheSourcesOfTenants: the author of a pull request chooses the repository of the fork, and no
// pipeline names it.
func TestForksStayWithinTheSourcesOfTenants(t *testing.T) {
	b := newBed(t, "")
	fork := b.server.Repository(t, "fork")
	fork.Commit("first", map[string]string{"app/a.yaml": "kind: ConfigMap\n"})
	in := b.host.in
	in.Fork, in.ForkURL, in.HeadCommit = true, fork.URL, strings.TrimSpace(fork.InWork("rev-parse", "HEAD"))
	allowed, refused := b.entryOfTenant(b.server.URL+"/*"), b.entryOfTenant(b.repository.URL)
	allowed.Pipeline.Spec.Preview.Provider = "BitbucketCloud"
	r := &rendering{heads: map[string]*source.Snapshot{}, bases: map[string]*source.Snapshot{}}
	r.a = &attempt{p: b.Previewer, one: b.one(), in: &in, entries: []catalog.Entry{allowed}}
	if err := r.fetchHeadAndBase(t.Context(), allowed); err != nil {
		t.Fatal(err)
	}
	err := r.fetchHeadAndBase(t.Context(), refused)
	if err == nil || !strings.Contains(err.Error(), "fetching the fork: pipelines in this repository may not read its repository") {
		t.Errorf("got %v", err)
	}
}
