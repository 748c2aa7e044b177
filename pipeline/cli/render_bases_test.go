// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
)

// The commands fetch remote bases as the daemon does, also for a source that is a directory here.
func TestRemoteBases(t *testing.T) {
	server := gittest.New(t)
	var down atomic.Bool
	server.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if down.Load() {
			http.Error(w, "not now", http.StatusForbidden)
		}
		return down.Load()
	})
	library := server.Repository(t, "library")
	first := library.Commit("first", map[string]string{"web/kustomization.yaml": "resources: [web.yaml]\n", "web/web.yaml": application("web", "app:1")})
	second := library.Commit("second", map[string]string{"web/web.yaml": application("web", "app:2")})
	repository := gittest.New(t).Repository(t, "config")
	name := func(ref string) string {
		return repository.Commit("base "+ref, map[string]string{"apps/web/kustomization.yaml": fmt.Sprintf("resources: [\"%s//web?ref=%s\"]\n", library.URL, ref)})
	}
	pipelines := t.TempDir()
	write := func(allowed string) {
		t.Helper()
		text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: web}\nspec:\n  source: {git: {url: %s, ref: {branch: main}}}\n"+
			"  build: {path: apps/web, remoteBases: [%s]}\n  policies: [{builtIn: istio}]\n  publish: [{git: {branch: rendered}}]\n", repository.URL, allowed)
		if err := os.WriteFile(filepath.Join(pipelines, "web.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("{url: \"" + library.URL + "\"}")
	common := []string{"--pipelines", pipelines, "--cache", t.TempDir()}
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, err := prerig(t, append(args[:1:1], append(slices.Clone(common), args[1:]...)...)...)
		if code != want {
			t.Fatalf("prerig %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, err)
		}
		return out + err
	}
	base := name(first)
	dir := t.TempDir()
	run(0, "render", "--to", dir)
	for _, source := range [][]string{nil, {"--source", repository.Work}, {"--revision", base}} {
		if out := run(0, append([]string{"render"}, source...)...); !strings.Contains(out, "image: app:1") || !strings.Contains(out, "istio-proxy") {
			t.Errorf("%v: rendered:\n%s", source, out)
		}
	}
	head := name(second)
	if out := run(1, "diff", "--against", dir, "--exit-code", "--source", repository.Work); !strings.Contains(out, "app:2") {
		t.Errorf("the new commit of the base makes no difference:\n%s", out)
	}
	if out := run(0, "affected", "-C", repository.Work, "--url", repository.URL, base+".."+head); !strings.Contains(out, "web") || !strings.Contains(out, "kustomization.yaml was changed") {
		t.Errorf("affected:\n%s", out)
	}
	// Where the base cannot be had, what the commits change is not known.
	down.Store(true)
	elsewhere := repository.Commit("elsewhere", map[string]string{"README.md": "x"})
	if out := run(0, "affected", "-C", repository.Work, "--url", repository.URL, head+".."+elsewhere, "--cache", t.TempDir()); !strings.Contains(out, "could not be found out") {
		t.Errorf("affected:\n%s", out)
	}
	down.Store(false)
	if out := run(0, "render", "--revision", base); !strings.Contains(out, "image: app:1") {
		t.Errorf("an earlier revision does not give what it gave:\n%s", out)
	}
	write("{url: \"https://git.example.com/org/*\"}")
	if out := run(2, "render"); !strings.Contains(out, "apps/web/kustomization.yaml:1: resources") || !strings.Contains(out, "not allowed by the pipeline") {
		t.Errorf("a repository that is not allowed:\n%s", out)
	}
}
