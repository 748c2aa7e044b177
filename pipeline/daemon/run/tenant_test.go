// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/secret/tenant"
)

// TestSubmodulesOfATenantStayWithinItsSources has two tenants of one namespace follow a repository whose submodule one of them may not read,
// which fetches it last.
func TestSubmodulesOfATenantStayWithinItsSources(t *testing.T) {
	w := newWorks(t)
	secret := w.git.Repository(t, "pay")
	secret.Commit("first", map[string]string{"text": "one"})
	w.repository.InWork("-c", "protocol.file.allow=always", "submodule", "add", "-q", secret.Bare, "sub")
	w.repository.InWork("config", "-f", ".gitmodules", "submodule.sub.url", "../"+filepath.Base(secret.Bare))
	w.repository.Commit("with a submodule", nil)
	var tenants []tenant.Tenant
	for directory, allowed := range map[string]string{"shop": w.repository.URL, "pay": w.git.URL + "/*"} {
		one, err := tenant.New(directory, []string{"team"}, []string{allowed}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		tenants = append(tenants, one)
		text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s, namespace: team}\nspec:\n"+
			"  source: {git: {url: %q, ref: {branch: main}, submodules: true}}\n  build: {path: sub}\n  publish: [{git: {branch: of-%[1]s}}]\n", directory, w.repository.URL)
		dir := filepath.Join(w.runner.PipelinesDir, directory)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "p.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := catalog.Open(w.runner.PipelinesDir, nil, catalog.WithRules(catalog.Rules{Tenants: tenants}))
	if err != nil {
		t.Fatal(err)
	}
	w.runner.Catalog = c
	for _, pipeline := range []string{"pay", "shop"} {
		_ = w.do("team/"+pipeline, "x", 1) // the status says what became of it
		published := strings.Contains(w.repository.Git("branch", "--list", "of-"+pipeline), "of-")
		if got := w.state("team/" + pipeline).Condition(); published != (pipeline == "pay") || !published && !strings.Contains(got.Message, "with the tenant's sources") {
			t.Errorf("%s: published %v, condition %+v", pipeline, published, got)
		}
	}
}
