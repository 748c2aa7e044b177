// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
)

// TestRenderWritesNothingThroughLinks renders into a directory that somebody else may have prepared.
func TestRenderWritesNothingThroughLinks(t *testing.T) {
	_, pipelines := fleet(t, "web")
	cache := t.TempDir()
	for name, link := range map[string]string{"a directory of the way": "web", "a directory that is made": "web/shop", "a file": "web/shop/deployment-web.yaml"} {
		t.Run(name, func(t *testing.T) {
			dir, outside := t.TempDir(), t.TempDir()
			theirs := put(t, "theirs", outside, "shop/deployment-web.yaml")
			put(t, "theirs", outside, "deployment-web.yaml")
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o755))
			to := outside
			if strings.HasSuffix(link, ".yaml") {
				to = theirs
			}
			must(t, os.Symlink(to, filepath.Join(dir, link)))
			code, _, stderr := prerig(t, "render", "--to", dir, "--pipelines", pipelines, "--cache", cache)
			if code != ExitError || !strings.Contains(stderr, "a link points to") {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
			for _, file := range []string{theirs, filepath.Join(outside, "deployment-web.yaml")} {
				if got := readFile(t, file); got != "theirs" {
					t.Errorf("%s was written:\n%s", file, got)
				}
			}
		})
	}
	t.Run("the directory itself may be one", func(t *testing.T) {
		dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
		must(t, os.Symlink(dir, link))
		if code, _, stderr := prerig(t, "render", "--to", link, "--pipelines", pipelines, "--cache", cache); code != ExitOK || !exists(dir, "web/shop/deployment-web.yaml") {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
	})
}

// TestRenderRemovesWhatItWroteEarlier deletes a workload, and leaves alone what the pipeline has not written.
func TestRenderRemovesWhatItWroteEarlier(t *testing.T) {
	repository, pipelines := fleet(t, "cart", "web")
	text := readFile(t, filepath.Join(pipelines, "cart.yaml"))
	put(t, strings.Replace(text, "branch: rendered", "branch: other, path: web/cart", 1), pipelines, "cart.yaml")
	dir, cache := t.TempDir(), t.TempDir()
	render := func(want int, args ...string) string {
		t.Helper()
		code, _, stderr := prerig(t, append([]string{"render", "--to", dir, "--pipelines", pipelines, "--cache", cache}, args...)...)
		if code != want {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
		return stderr
	}
	repository.Commit("more", map[string]string{"apps/web/more.yaml": application("more", "app:1"), "apps/cart/more.yaml": application("more", "app:1")})
	render(ExitOK)
	put(t, "mine", dir, "web/README.md")
	put(t, application("own", "app:1"), dir, "web/shop/deployment-own.yaml")
	repository.Commit("less", map[string]string{"apps/web/more.yaml": "# nothing\n", "apps/cart/more.yaml": "a: [\n"})
	if stderr := render(ExitError); !strings.Contains(stderr, "removed 1 file from earlier renders: "+filepath.Join(dir, "web/shop/deployment-more.yaml")) {
		t.Errorf("it is not told:\n%s", stderr)
	}
	if exists(dir, "web/shop/deployment-more.yaml") {
		t.Error("the workload that was deleted lives on")
	}
	for _, file := range []string{"web/README.md", "web/shop/deployment-own.yaml", "web/shop/deployment-web.yaml", "web/cart/shop/deployment-cart.yaml", "web/cart/shop/deployment-more.yaml"} {
		if !exists(dir, file) {
			t.Errorf("%s is gone", file)
		}
	}
	// Where the pipeline goes, its files go.
	put(t, strings.Replace(readFile(t, filepath.Join(pipelines, "web.yaml")), "branch: rendered", "branch: rendered, path: site", 1), pipelines, "web.yaml")
	render(ExitOK, "team/web")
	if exists(dir, "web/shop/deployment-web.yaml") || !exists(dir, "site/shop/deployment-web.yaml") || !exists(dir, "web/shop/deployment-own.yaml") {
		t.Error("the files did not move alone")
	}
	if code, out, stderr := prerig(t, "diff", "team/web", "--against", dir, "--pipelines", pipelines, "--cache", cache); code != ExitOK {
		t.Errorf("exit code %d\n%s%s", code, out, stderr)
	}
}

// TestRenderThroughLinksOfTheDirectory has links to other places in the directory, which are followed: to what is written, and to what goes.
func TestRenderThroughLinksOfTheDirectory(t *testing.T) {
	repository, pipelines := fleet(t, "web")
	dir, cache := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "sites/web"), 0o755))
	must(t, os.Symlink(filepath.Join(dir, "sites/web"), filepath.Join(dir, "web")))
	render := func() {
		t.Helper()
		if code, _, stderr := prerig(t, "render", "--to", dir, "--pipelines", pipelines, "--cache", cache); code != ExitOK {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
	}
	repository.Commit("more", map[string]string{"apps/web/more.yaml": application("more", "app:1")})
	render()
	if !exists(dir, "sites/web/shop/deployment-more.yaml") {
		t.Error("it was not written through the link")
	}
	repository.Commit("less", map[string]string{"apps/web/more.yaml": "# nothing\n"})
	render()
	if exists(dir, "sites/web/shop/deployment-more.yaml") || !exists(dir, "sites/web/shop/deployment-web.yaml") {
		t.Error("what is gone was not removed, or more than that")
	}
	// The same files under another path: what goes and what comes are one.
	put(t, strings.Replace(readFile(t, filepath.Join(pipelines, "web.yaml")), "branch: rendered", "branch: rendered, path: sites/web", 1), pipelines, "web.yaml")
	render()
	if !exists(dir, "sites/web/shop/deployment-web.yaml") {
		t.Error("what was written was removed")
	}
}

// TestRenderNamesWhatNobodyHasRecorded renders into a directory of a version that kept no records.
func TestRenderNamesWhatNobodyHasRecorded(t *testing.T) {
	_, pipelines := fleet(t, "cart", "web")
	dir := t.TempDir()
	text := readFile(t, filepath.Join(pipelines, "cart.yaml"))
	put(t, strings.Replace(text, "branch: rendered", "branch: other, path: web/cart", 1), pipelines, "cart.yaml")
	put(t, application("cart", "app:1"), dir, "web/cart/shop/deployment-cart.yaml")
	put(t, "mine", dir, "web/README.md")
	old := put(t, application("old", "app:1"), dir, "web/shop/deployment-old.yaml")
	put(t, "<<<<<<< HEAD\n", dir, ".prerig/pipelines/team__web.record")
	code, _, stderr := prerig(t, "render", "team/web", "--to", dir, "--pipelines", pipelines, "--cache", t.TempDir())
	if want := "warning: not in the result of team/web, and not known to be left over from an earlier one: " + old + "; "; code != ExitOK || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, want %q\n%s", code, want, stderr)
	}
	if !exists(old) || !exists(dir, "web/cart/shop/deployment-cart.yaml") {
		t.Error("a file is gone that may be somebody's")
	}
}

// TestRecordsRemoveNothingOutside has a record name what no pipeline can have written.
func TestRecordsRemoveNothingOutside(t *testing.T) {
	_, pipelines := fleet(t, "web")
	dir, outside := t.TempDir(), t.TempDir()
	theirs := put(t, "theirs", outside, "x")
	must(t, os.Symlink(outside, filepath.Join(dir, "out")))
	put(t, "theirs", dir, ".git/config")
	record := func(file string) {
		put(t, `{"pipeline":"team/web","path":"web","files":["`+filepath.ToSlash(file)+`"],"objects":[]}`, dir, ".prerig/pipelines/team__web.record")
		_, _, _ = prerig(t, "render", "--to", dir, "--pipelines", pipelines, "--cache", t.TempDir())
	}
	up, err := filepath.Rel(dir, theirs)
	must(t, err)
	for _, file := range []string{"out/x", up, theirs, ".git/config"} {
		if record(file); !exists(theirs) || !exists(dir, ".git/config") {
			t.Fatalf("the record of %s had a file removed", file)
		}
	}
}

// TestRenderDoesNotReadItsResults renders a source that the results are in.
func TestRenderDoesNotReadItsResults(t *testing.T) {
	pipelines, work := t.TempDir(), t.TempDir()
	put(t, "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: shop}\nspec:\n"+
		"  source: {git: {url: https://git.example/org/apps.git, ref: {branch: main}}}\n  build: {path: .}\n  policies: [{builtIn: istio}]\n  publish: [{git: {branch: rendered}}]\n",
		pipelines, "shop.yaml")
	put(t, application("web", "app:1"), work, "web.yaml")
	t.Chdir(work)
	run := func(args ...string) {
		t.Helper()
		if code, out, stderr := prerig(t, append(args, "--source", ".", "--pipelines", pipelines, "--cache", t.TempDir())...); code != ExitOK {
			t.Fatalf("prerig %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, stderr)
		}
	}
	run("render", "--to", "rendered/")
	run("render", "--to", "rendered/")
	run("diff", "--against", "rendered")
	put(t, application("till", "app:1"), "web.yaml")
	run("render", "-o", "rendered")
	if exists("rendered/shop/shop/deployment-web.yaml") || !exists("rendered/shop/shop/deployment-till.yaml") {
		t.Error("the workload was not renamed")
	}
}

// TestRenderKeepsWhatCannotBeRendered breaks one of two Applications: the other one is written, and the files of the broken one stay,
// even if no finding is to stop a result.
func TestRenderKeepsWhatCannotBeRendered(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	pipelines, dir, cache := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: apps, namespace: team}\nspec:\n"+
		"  source: {git: {url: "+repository.URL+", ref: {branch: main}}}\n  build: {path: start, releases: {kubeVersion: 1.33.4}}\n"+
		"  gates: {severity: Never}\n  publish: [{git: {branch: rendered, path: out}}]\n", pipelines, "apps.yaml")
	app := func(name string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + name + "}\nspec:\n  destination: {namespace: shop}\n" +
			"  source: {repoURL: \"" + repository.URL + "\", path: " + name + "}\n---\n"
	}
	configMap := func(name, value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {value: " + value + "}\n"
	}
	repository.Commit("first", map[string]string{"start/apps.yaml": app("a") + app("b"), "a/a.yaml": configMap("a", "one"), "b/b.yaml": configMap("b", "one")})
	render := func(want int) string {
		t.Helper()
		code, _, stderr := prerig(t, "render", "--to", dir, "--pipelines", pipelines, "--cache", cache)
		if code != want {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
		return stderr
	}
	render(ExitOK)
	repository.Commit("broken", map[string]string{"a/a.yaml": configMap("a", "two"), "b/b.yaml": configMap("b", "[one")})
	for range 2 {
		contains(t, render(ExitError), "error: start/apps.yaml:13: Application b spec.source.path: reading b/b.yaml: ", "error: team/apps: not rendered: Application b")
		if got := readFile(t, filepath.Join(dir, "out/shop/configmap-a.yaml")); !strings.Contains(got, "value: two") {
			t.Errorf("the Application that can be rendered was not written:\n%s", got)
		}
		if got := readFile(t, filepath.Join(dir, "out/shop/configmap-b.yaml")); !strings.Contains(got, "value: one") {
			t.Errorf("the file of the broken Application was changed:\n%s", got)
		}
	}
	repository.Commit("without", map[string]string{"start/apps.yaml": app("a")})
	contains(t, render(ExitOK), "removed 1 file from earlier renders")
}
