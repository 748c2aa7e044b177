// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/secret/tenant"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// addSubmodule commits a submodule, as the repository's own URL or a relative one has it.
func addSubmodule(r, module *gittest.Repository, at, url string) string {
	r.InWork("-c", "protocol.file.allow=always", "submodule", "add", "-q", module.Bare, at)
	r.InWork("config", "-f", ".gitmodules", "submodule."+at+".url", url)
	return r.Commit("with "+at, nil)
}

// secrets are one secret for every pipeline, for the servers with these URLs.
func secrets(t *testing.T, servers ...string) secret.Dir {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"git/username": "reader", "git/password": "s3cr3t", "git/.hosts": strings.Join(servers, "\n")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return secret.Dir{Path: dir}
}

func TestNestedSubmodules(t *testing.T) {
	own, other := gittest.New(t), gittest.New(t)
	config, library, inner := own.Repository(t, "config"), own.Repository(t, "library"), own.Repository(t, "inner")
	foreign, private := other.Repository(t, "foreign"), own.Repository(t, "private")
	private.Commit("first", map[string]string{"secret.yaml": "not for everybody"})
	foreign.Commit("first", map[string]string{"f.yaml": "of another host"})
	inner.Commit("first", map[string]string{"base/i.yaml": "innermost"})
	library.Commit("first", map[string]string{"l.yaml": "library"})
	addSubmodule(library, inner, "vendor/inner", "../inner.git")
	addSubmodule(library, foreign, "vendor/foreign", foreign.URL)
	config.Commit("first", map[string]string{"a": "one"})
	addSubmodule(config, library, "lib", "../library.git")
	own.Username, own.Password = "reader", "s3cr3t"
	other.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "" {
			t.Error("another host was given credentials")
		}
		return false
	})
	src := v1alpha1.Source{Git: &v1alpha1.GitSource{URL: config.URL, SecretRef: &meta.LocalObjectReference{Name: "git"}, Submodules: true}}
	fetcher := source.New(source.Options{StateDir: t.TempDir(), Secrets: secrets(t, own.URL)})
	snapshot, err := fetcher.Fetch(ctx, source.Scope{}, src, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"lib/l.yaml": "library", "lib/vendor/inner/base/i.yaml": "innermost", "lib/vendor/foreign/f.yaml": "of another host"} {
		if got := read(t, snapshot, name); got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
	list, err := tree.NewView(snapshot.Tree, tree.Limits{}).List("lib/vendor/inner/base")
	if err != nil || len(list) != 1 || list[0].Path != "lib/vendor/inner/base/i.yaml" {
		t.Errorf("got %v, %v", list, err)
	}
	// What another host names is fetched without the source's credentials, wherever it is.
	addSubmodule(foreign, private, "stolen", private.URL)
	library.InWork("-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init", "vendor/foreign")
	library.InWork("-C", "vendor/foreign", "-c", "protocol.file.allow=always", "fetch", "-q", foreign.Bare, "main")
	library.InWork("-C", "vendor/foreign", "checkout", "-q", "FETCH_HEAD")
	library.Commit("newer", nil)
	config.InWork("-C", "lib", "-c", "protocol.file.allow=always", "fetch", "-q", library.Bare, "main")
	config.InWork("-C", "lib", "checkout", "-q", "FETCH_HEAD")
	config.Commit("newer", nil)
	if _, err = fetcher.Fetch(ctx, source.Scope{}, src, ""); err == nil || !strings.Contains(err.Error(), "fetching submodule lib/vendor/foreign/stolen") || !strings.Contains(err.Error(), "asks for credentials") {
		t.Errorf("got %v", err)
	}
}

func TestSubmodulesAreBounded(t *testing.T) {
	server := gittest.New(t)
	below := server.Repository(t, "r0")
	below.Commit("first", map[string]string{"a": "0"})
	for i := 1; i <= 10; i++ {
		r := server.Repository(t, fmt.Sprintf("r%d", i))
		addSubmodule(r, below, "sub", "../"+filepath.Base(below.Bare))
		below = r
	}
	src := v1alpha1.Source{Git: &v1alpha1.GitSource{URL: below.URL, Submodules: true}}
	_, err := source.New(source.Options{StateDir: t.TempDir()}).Fetch(ctx, source.Scope{}, src, "")
	if err == nil || !strings.Contains(err.Error(), "one inside of the other is over the limit of 8") {
		t.Errorf("got %v", err)
	}
}

// What one pipeline has fetched with its credentials is not there for another that has none.
func TestFilesNeedTheirOwnCredentials(t *testing.T) {
	server := gittest.New(t)
	r := server.Repository(t, "private")
	commit := r.Commit("first", map[string]string{"a": "one"})
	server.Username, server.Password = "reader", "s3cr3t"
	fetcher := source.New(source.Options{StateDir: t.TempDir(), Secrets: secrets(t, server.URL)})
	ref := &meta.LocalObjectReference{Name: "git"}
	if _, err := fetcher.Files(ctx, "", r.URL, ref, commit); err != nil {
		t.Fatal(err)
	}
	if _, err := fetcher.Files(ctx, "", r.URL, nil, commit); err == nil || !strings.Contains(err.Error(), "asks for credentials") {
		t.Errorf("got %v", err)
	}
	asked := server.Requests.Load()
	if _, err := fetcher.Files(ctx, "", r.URL, ref, commit); err != nil || server.Requests.Load() != asked {
		t.Errorf("it was asked again: %v", err)
	}
}

// Where the daemon bounds what may be read, a submodule leads nowhere else.
func TestSubmodulesStayWithinEgress(t *testing.T) {
	server := gittest.New(t)
	below := server.Repository(t, "below")
	below.Commit("first", map[string]string{"a": "0"})
	r := server.Repository(t, "above")
	addSubmodule(r, below, "sub", "../"+filepath.Base(below.Bare))
	src := v1alpha1.Source{Git: &v1alpha1.GitSource{URL: r.URL, Submodules: true}}
	for allowed, want := range map[string]string{r.URL: "fetching submodule sub: pipelines of this daemon may not read its repository", server.URL + "/*": ""} {
		reach, err := tenant.NewReach([]string{allowed}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = source.New(source.Options{StateDir: t.TempDir(), Sources: reach.Sources}).Fetch(ctx, source.Scope{}, src, "")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v", allowed, err)
		}
	}
}

// A submodule leads nowhere that the sources of its pipeline's tenant do not allow, also where another tenant's pipeline has fetched it.
func TestSubmodulesStayWithinTheTenant(t *testing.T) {
	server := gittest.New(t)
	below := server.Repository(t, "pay")
	below.Commit("first", map[string]string{"a": "0"})
	r := server.Repository(t, "shop")
	addSubmodule(r, below, "sub", "../"+filepath.Base(below.Bare))
	var asked atomic.Int64
	server.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/pay") {
			asked.Add(1)
		}
		return false
	})
	src := v1alpha1.Source{Git: &v1alpha1.GitSource{URL: r.URL, Submodules: true}}
	scope := func(directory, allowed string) source.Scope {
		one, err := tenant.New(directory, []string{"team"}, []string{allowed}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return source.Scope{Namespace: "team", Submodules: one.Sources, Whose: one.Whose()}
	}
	shop, pay := scope("teams/shop", r.URL), scope("teams/pay", server.URL+"/*")
	shared := source.Share(source.New(source.Options{StateDir: t.TempDir()}))
	refused := func() {
		t.Helper()
		_, err := shared.Fetch(ctx, shop, src, "")
		if err == nil || err.Error() != "fetching submodule sub: pipelines in teams/shop may not read its repository; who runs the daemon can allow it with the tenant's sources" {
			t.Errorf("got %v", err)
		}
	}
	if refused(); asked.Load() > 0 {
		t.Error("the server was asked for a repository that the tenant may not read")
	}
	snapshot, err := shared.Fetch(ctx, pay, src, "")
	if err != nil || read(t, snapshot, "sub/a") != "0" {
		t.Fatal(err)
	}
	refused()
	named := func(s source.Scope) bool {
		all := []v1alpha1.NamedSource{{Source: src}}
		return shared.Seen(s, all, snapshot.Revisions(), time.Hour)
	}
	if !named(pay) || named(shop) {
		t.Error("what one tenant has seen counts for another")
	}
	if _, err := shared.Fetch(ctx, source.Scope{Namespace: "team"}, src, ""); err != nil {
		t.Errorf("without a tenant: %v", err)
	}
}
