// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/prerig/prerig/pipeline/internal/charttest"
	"github.com/prerig/prerig/pipeline/internal/gittest"
)

// remoteFiles is a server with one file, whose content can change.
func remoteFiles(t *testing.T, content string) (url string, change func(string)) {
	t.Helper()
	var now atomic.Value
	now.Store(content)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, now.Load()) }))
	t.Cleanup(server.Close)
	return server.URL + "/releases/v1/install.yaml", func(text string) { now.Store(text) }
}

func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {value: %q}\n", name, value)
}

// A remote base by tag, one by branch below it, and a remote file are locked, rendered as locked, renewed and compared.
func TestRemoteBasesAndFilesAreLocked(t *testing.T) {
	server := gittest.New(t)
	inner, outer := server.Repository(t, "inner"), server.Repository(t, "outer")
	first := inner.Commit("first", map[string]string{"kustomization.yaml": "resources: [inner.yaml]\n", "inner.yaml": configMap("inner", "one")})
	outer.Commit("first", map[string]string{
		"web/kustomization.yaml": fmt.Sprintf("resources: [web.yaml, \"%s?ref=main\"]\n", inner.URL), "web/web.yaml": configMap("web", "one"),
	})
	outer.InWork("tag", "v1")
	outer.InWork("push", "-q", "origin", "v1")
	url, change := remoteFiles(t, configMap("file", "one"))
	c := newChartCommands(t, fmt.Sprintf("    path: app\n    remoteBases: [{url: \"%s/*\"}, {url: \"%s\"}]", server.URL, strings.TrimSuffix(url, "/v1/install.yaml")))
	c.write("source/app/kustomization.yaml", fmt.Sprintf("resources:\n- %s//web?ref=v1\n- %s\n", outer.URL, url))

	contains(t, c.run(2, "render"), "app/kustomization.yaml:2: resources", "ref=v1 is remote", `its ref "v1" is a branch, a tag`, "run prerig lock and commit what it writes")
	contains(t, c.run(1, "lock", "--check"), "missing  base", "outer v1", "inner main", "missing  file "+url)
	contains(t, c.run(0, "lock"), "2 remote bases, 1 remote file locked", "added    "+strings.TrimSuffix(outer.URL, ".git")+" v1 at")
	contains(t, c.lock(), "  bases:\n  - repository: "+strings.TrimSuffix(inner.URL, ".git")+"\n    ref: main\n    commit: "+first+"\n", "  files:\n  - url: "+url+"\n    digest: sha256:")
	rendered := c.run(0, "render")
	contains(t, rendered, "name: inner", "name: web", "name: file", "value: one")
	contains(t, c.run(0, "lock", "--check"), "current  base", "current  file "+url)

	// What moves on the servers changes nothing until the lock is renewed.
	second := inner.Commit("second", map[string]string{"inner.yaml": configMap("inner", "two")})
	if again := c.run(0, "render"); again != rendered {
		t.Errorf("the branch has moved, and so has the result:\n%s", again)
	}
	contains(t, c.run(0, "lock", "--check"), "newer    base", "inner main "+first+"  -> "+second)
	outer.Commit("second", map[string]string{"web/web.yaml": configMap("web", "two")})
	outer.InWork("tag", "-f", "v1")
	outer.InWork("push", "-q", "-f", "origin", "v1")
	contains(t, c.run(1, "lock", "--check"), "changed  base", "outer v1")
	change(configMap("file", "two"))
	c.cache = t.TempDir()
	contains(t, c.run(2, "render"), "app/kustomization.yaml:3: resources", "does not have the digest sha256:", "review it and run prerig lock")
	contains(t, c.run(1, "lock", "--check"), "changed  file "+url)
	before := c.lock()
	if c.run(1, "lock", "--check"); c.lock() != before {
		t.Errorf("--check has written:\n%s", c.lock())
	}
	contains(t, c.run(0, "lock"), "moved    ", " v1 at", "main at "+second, url+" with sha256:")
	if out := c.run(0, "render"); strings.Contains(out, "value: one") || strings.Count(out, "value: two") != 3 {
		t.Errorf("rendered with the new lock:\n%s", out)
	}
	c.write("source/app/kustomization.yaml", "resources: [own.yaml]\n")
	c.write("source/app/own.yaml", configMap("own", "one"))
	contains(t, c.run(0, "lock"), "0 charts locked", "dropped  "+url)
}

// A file below a server that the pipeline does not allow is refused, also by prerig lock.
func TestLockAsksOnlyWhatThePipelineAllows(t *testing.T) {
	url, _ := remoteFiles(t, configMap("file", "one"))
	c := newChartCommands(t, "    path: app\n    remoteBases: [{url: \"https://git.example.com/*\"}]")
	c.write("source/app/kustomization.yaml", "resources: ["+url+"]\n")
	contains(t, c.run(2, "lock"), "app/kustomization.yaml:1: resources", "not allowed by the pipeline", "spec.build.remoteBases")
	if _, err := os.Stat(c.lockFile); err == nil {
		t.Error("a lock was written")
	}
}

// A remote base and a remote file in a Flux cluster fail their Kustomization alone until they are locked.
func TestFluxUnitsWithRemoteBases(t *testing.T) {
	server := gittest.New(t)
	library := server.Repository(t, "library")
	library.Commit("first", map[string]string{"web/kustomization.yaml": "resources: [web.yaml]\n", "web/web.yaml": configMap("web", "${WHO}")})
	url, _ := remoteFiles(t, configMap("file", "one"))
	c := newChartCommands(t, fmt.Sprintf("    flux: {path: cluster}\n    remoteBases: [{url: \"%s/*\"}, {url: \"%s\"}]", server.URL, strings.TrimSuffix(url, "/install.yaml")))
	unit := func(name string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: flux-system}\nspec:\n  interval: 1m\n  prune: true\n  path: ./" + name +
			"\n  targetNamespace: shop\n  postBuild: {substitute: {WHO: me}}\n  sourceRef: {kind: GitRepository, name: flux-system}\n"
	}
	c.write("source/cluster/units.yaml", unit("bad")+"---\n"+unit("good"))
	c.write("source/bad/kustomization.yaml", fmt.Sprintf("resources:\n- %s\n- %s//web?ref=main\n", url, library.URL))
	c.write("source/good/own.yaml", configMap("own", "one"))
	out := c.run(2, "render")
	contains(t, out, "name: own", "flux-system/bad", "bad/kustomization.yaml:2: resources", "run prerig lock")
	contains(t, c.run(0, "lock"), "1 remote base, 1 remote file locked")
	contains(t, c.run(0, "render"), "name: own", "name: web", "value: me", "name: file", "namespace: shop")
}

// An ImageLock in the source gets the digests that its tags have now, and keeps its name; --check names a tag that has moved.
func TestImageLocksAreRenewed(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	image := strings.TrimPrefix(server.URL, "http://") + "/istio/proxyv2:1.31.0"
	first := push(t, image, "linux/amd64")
	c := newChartCommands(t, "    path: app")
	c.write("source/app/own.yaml", configMap("own", "one"))
	c.write("source/policies/imagelock.yaml", lockText("mesh", lockedDigest, image))
	contains(t, c.run(1, "lock", "--check"), "lost     image "+image)
	contains(t, c.run(0, "lock"), "imagelock.yaml: 1 image locked")
	contains(t, readFile(t, filepath.Join(c.dir, "source/policies/imagelock.yaml")), "name: mesh", "digest: "+first)
	contains(t, c.run(0, "lock", "--check"), "current  image "+image)
	second := push(t, image, "linux/amd64", "linux/arm64")
	contains(t, c.run(1, "lock", "--check"), "changed  image "+image+"  -> "+second)
	c.run(0, "lock", "--quiet")
	contains(t, readFile(t, filepath.Join(c.dir, "source/policies/imagelock.yaml")), "digest: "+second)
}

// What Flux leaves out of the artifact of a source is not built: its defaults, or .sourceignore and spec.ignore.
func TestFluxBuildsWithoutIgnoredFiles(t *testing.T) {
	c := newChartCommands(t, "    flux: {path: cluster}")
	c.write("source/cluster/unit.yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: app, namespace: flux-system}\nspec:\n  interval: 1m\n  prune: true\n"+
		"  path: ./app\n  sourceRef: {kind: GitRepository, name: flux-system}\n")
	c.write("source/app/own.yaml", configMap("own", "one"))
	c.write("source/app/.sops.yaml", "creation_rules: []\n")
	contains(t, c.run(0, "render"), "name: own")
	c.write("source/app/broken.yaml", "a: [\n")
	contains(t, c.run(2, "render"), "reading app/broken.yaml as Kubernetes objects")
	c.write("source/.sourceignore", "broken.yaml\n.sops.yaml\n")
	contains(t, c.run(0, "render"), "name: own")
	c.write("source/.sourceignore", "# nothing\n")
	source := "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\nspec:\n  url: https://git.example.com/a/b\n"
	c.write("source/cluster/source.yaml", source+"  ignore: |\n    /app/broken.yaml\n    .sops.yaml\n")
	contains(t, c.run(0, "render"), "name: own")
}

// One Application of a chart that is not locked, and one of a kustomization with a base that is not, do not stop the others.
func TestUnlockedApplicationsDoNotStopOthers(t *testing.T) {
	repository := charttest.New(t)
	repository.Add("web", "1.0.0", webChart(t, "1.0.0"))
	server := gittest.New(t)
	library := server.Repository(t, "library")
	library.Commit("first", map[string]string{"kustomization.yaml": "resources: [base.yaml]\n", "base.yaml": configMap("of-base", "one")})
	c := newChartCommands(t, fmt.Sprintf("    path: apps\n    releases: {kubeVersion: 1.33.4, repositories: [{url: \"https://git.example.com/a/b\", path: .}]}\n"+
		"    chartRepositories: [{url: \"%s\"}]\n    remoteBases: [{url: \"%s/*\"}]", repository.URL, server.URL))
	app := func(name, source string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + name + ", namespace: argocd}\nspec:\n  project: default\n  destination: {namespace: shop, server: \"https://kubernetes.default.svc\"}\n  source: {" + source + "}\n"
	}
	c.write("source/apps/a.yaml", app("chart", "repoURL: \""+repository.URL+"\", chart: web, targetRevision: 1.0.0"))
	c.write("source/apps/b.yaml", app("base", "repoURL: \"https://git.example.com/a/b\", path: based"))
	c.write("source/apps/c.yaml", app("good", "repoURL: \"https://git.example.com/a/b\", path: good"))
	c.write("source/based/kustomization.yaml", fmt.Sprintf("resources: [\"%s?ref=main\"]\n", library.URL))
	c.write("source/good/own.yaml", configMap("own", "one"))
	out := c.run(2, "render")
	contains(t, out, "name: own", "Application argocd/chart", "the chart web of "+repository.URL+" is not locked", "Application argocd/base", "based/kustomization.yaml:1: resources", "run prerig lock")
	contains(t, c.run(0, "lock"), "1 chart, 1 remote base locked")
	contains(t, c.run(0, "render"), "name: own", "name: chart-web", "name: of-base")
}

// A repository without pipelines is locked as prerig review finds it; the review says once what is not locked, and renders it when it is.
func TestRepositoryWithoutPipelinesIsLocked(t *testing.T) {
	charts := charttest.New(t)
	charts.Add("web", "1.0.0", webChart(t, "1.0.0"))
	charts.Add("db", "1.0.0", charttest.Package(t, "db", "1.0.0", map[string]string{"templates/db.yaml": webTemplate}))
	repository := gittest.New(t).Repository(t, "home")
	release := func(name, chart, version string) string {
		return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: " + name + ", namespace: shop}\nspec:\n  interval: 1m\n" +
			"  chart: {spec: {chart: " + chart + ", version: " + version + ", sourceRef: {kind: HelmRepository, name: charts}}}\n"
	}
	repository.Commit("first", map[string]string{
		"app/charts.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: shop}\nspec: {url: \"" + charts.URL + "\"}\n",
		"app/web.yaml":    release("web", "web", "1.0.0"), "app/db.yaml": release("db", "db", "1.0.0"), "app/own.yaml": configMap("own", "one"),
	})
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, err := prerig(t, append(args, "--cache", filepath.Join(t.TempDir(), "cache"))...)
		if code != want {
			t.Fatalf("prerig %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, err)
		}
		return out + err
	}
	slower := strings.NewReplacer("interval: 1m", "interval: 2m")
	repository.Commit("second", map[string]string{
		"app/own.yaml": configMap("own", "two"), "app/web.yaml": slower.Replace(release("web", "web", "1.0.0")),
		"app/db.yaml": slower.Replace(release("db", "db", "1.0.0")),
	})
	out := run(1, "review", "-C", repository.Work, "HEAD~1..HEAD")
	contains(t, out, "warning: 2 releases compared as objects, not by what they install, as their charts are not locked (prerig lock locks them): HelmRelease shop/db, HelmRelease shop/web")
	contains(t, run(0, "lock", "--source", repository.Work), "2 charts locked", "added    web 1.0.0 of "+charts.URL)
	repository.Commit("lock", nil)
	charts.Add("web", "1.1.0", charttest.Package(t, "web", "1.1.0", map[string]string{"templates/web.yaml": webTemplate}))
	repository.Commit("upgrade", map[string]string{"app/web.yaml": release("web", "web", "1.1.0")})
	contains(t, run(0, "lock", "--source", repository.Work), "added    web 1.1.0")
	repository.Commit("lock again", nil)
	out = run(1, "review", "-C", repository.Work, "HEAD~2..HEAD")
	if strings.Contains(out, "not locked") || !strings.Contains(out, "1.1.0") {
		t.Errorf("both ends are locked:\n%s", out)
	}
}
