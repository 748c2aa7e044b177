// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/storetest"
)

// with is a server with pipelines of these files.
func with(t testing.TB, pipelines map[string]string) *Server {
	t.Helper()
	dir := t.TempDir()
	for name, text := range pipelines {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := catalog.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	q, store := storetest.Open(t)
	s, err := New(Options{Catalog: c, Store: store, Queue: q, Tokens: openTokens(t, ""), Version: "v1.2.3", Log: slog.New(slog.DiscardHandler), Delivery: func(string, string) {}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const object = "---\napiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s, namespace: team}\nspec:\n  source: {git: {url: \"https://git.example.com/%s.git\"}}\n%s"

// shown returns the names of the pipelines on a page of the list.
func shown(body string) (names []string) {
	for _, found := range regexp.MustCompile(`/pipeline\?name=([^"]+)"`).FindAllStringSubmatch(body, -1) {
		name, _ := url.QueryUnescape(found[1])
		names = append(names, name)
	}
	return names
}

func TestListOfAThousand(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, object, fmt.Sprintf("app-%04d", i), fmt.Sprintf("repository-%d", i%10), "")
	}
	s := with(t, map[string]string{"all.yaml": text.String()})
	save(t, s.Store, "team/app-0500", status.Published, "fine", false)
	save(t, s.Store, "team/app-0700", status.Failed, "bad", false)
	if err := s.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := s.Admin(Access{Loopback: true})
	page := func(path string) (string, []string) {
		t.Helper()
		response, body := get(t, h, path)
		if response.StatusCode != http.StatusOK || len(body) > 100_000 {
			t.Errorf("%s: %s, %d bytes", path, response.Status, len(body))
		}
		return body, shown(body)
	}
	body, names := page("/")
	if len(names) != pageSize || names[0] != "team/app-0700" || names[1] != "team/app-0000" {
		t.Errorf("%d are shown, first %q", len(names), names[:2])
	}
	if !strings.Contains(body, "<title>1 failing · Prerig</title>") || !strings.Contains(body, "1 to 100 of 1000") {
		t.Error("it is not said how many there are")
	}
	// Over all pages each is shown once.
	all := map[string]int{}
	for n := 1; n <= 10; n++ {
		_, names := page(fmt.Sprintf("/?page=%d&sort=name", n))
		for _, name := range names {
			all[name]++
		}
	}
	if len(all) != 1000 {
		t.Errorf("all pages show %d pipelines", len(all))
	}
	for path, want := range map[string][]string{
		"/?find=APP-050&sort=name&page=7": {"team/app-0500", "team/app-0501", "team/app-0502", "team/app-0503", "team/app-0504", "team/app-0505", "team/app-0506", "team/app-0507", "team/app-0508", "team/app-0509"},
		"/?state=Ready":                   {"team/app-0500"},
		"/?state=Stalled&find=app-0":      {"team/app-0700"},
		"/?state=Ready&find=app-07":       nil,
		"/?find=repository-3&page=-1":     nil,
	} {
		body, names := page(path)
		if path == "/?find=repository-3&page=-1" {
			if len(names) != 100 || names[0] != "team/app-0003" {
				t.Errorf("by source %d are found", len(names))
			}
			continue
		}
		if !cmp.Equal(names, want) {
			t.Errorf("%s shows %q", path, names)
		}
		if want == nil && !strings.Contains(body, `<a href="/">Show all</a>`) {
			t.Errorf("%s leads nowhere", path)
		}
	}
	if _, names := page("/?sort=time"); names[0] == "team/app-0000" {
		t.Errorf("the last run is not first: %q", names[:2])
	}
	if body, _ := page("/?state=New&find=app"); !strings.Contains(body, `href="/?find=app&amp;state=Ready"`) || !strings.Contains(body, `href="/?find=app&amp;page=2&amp;state=New"`) {
		t.Error("links lose the filters")
	}
}

func TestPageOfAPipeline(t *testing.T) {
	publish := `  publish:
  - git: {branch: rendered, path: apps/web}
  - git: {branch: prod, path: web, propose: {}}
  - oci: {url: "oci://registry.example.com/web", tags: [v1, latest]}
`
	s := with(t, map[string]string{"web.yaml": fmt.Sprintf(object, "web", "config", publish), "paused.yaml": fmt.Sprintf(object, "paused", "config", "  suspend: true\n"), "held.yaml": fmt.Sprintf(object, "held", "config", "")})
	state := &status.State{}
	state.Ready(metav1.Now().Time, false, v1alpha1.ReasonBuildFailed, "it <b>broke</b>", true)
	hash := strings.Repeat("ab", 20)
	state.Status.Published = []v1alpha1.Published{{Target: "https://git.example.com/config.git rendered apps/web", Revision: hash, SourceRevision: "main@sha1:" + strings.Repeat("cd", 20)}}
	if _, err := s.Store.Save(t.Context(), "team/web", state, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.SetControl(t.Context(), "team/held", func(c *status.Control) { c.Suspended = true }); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := s.Admin(Access{Loopback: true})
	for path, want := range map[string][]string{
		"/pipeline?name=team/web": {
			"branch rendered of https://git.example.com/config.git, in apps/web", `href="https://git.example.com/config/commit/` + hash + `"`,
			"proposed for branch prod of", "oci://registry.example.com/web, tagged v1, latest", "nothing published yet",
			"<td>Ready</td><td>False</td><td>BuildFailed</td>", "<td>Stalled</td><td>True</td>", "it &lt;b&gt;broke&lt;/b&gt;", "No run yet",
		},
		"/pipeline?name=team/paused": {"by <code>spec.suspend</code> in its file", ">Suspended<"},
		"/pipeline?name=team/held":   {"<code>prerig daemon resume team/held</code>", ">Suspended<"},
	} {
		_, body := get(t, h, path)
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s lacks %q:\n%s", path, text, body)
			}
		}
	}
}

func TestHostileNames(t *testing.T) {
	file := `<img src=x onerror=alert(1)>"&'.yaml`
	s := with(t, map[string]string{file: "a: [", "web.yaml": fmt.Sprintf(object, "web", "config", "")})
	run := status.Run{Run: v1alpha1.Run{ID: "run1", Revision: `"><script>`, Outcome: status.Published, Message: hostile}, Reason: hostile, Cause: hostile, Diff: true,
		Published: []v1alpha1.Published{{Target: "javascript:alert(1) " + hostile, Revision: strings.Repeat("ab", 20)}}, Findings: []string{hostile}}
	state := &status.State{}
	state.Ready(metav1.Now().Time, true, "Reason", hostile, false)
	state.Add(run, 5)
	if _, err := s.Store.Save(t.Context(), "team/web", state, 0); err != nil {
		t.Fatal(err)
	}
	patch := "--- a/f\n+++ b/f\n@@ -1 +1 @@ " + hostile + "\n-" + hostile + "\n+" + hostile + "\n"
	if err := s.Store.SaveDiff(t.Context(), "team/web", "run1", &status.Diff{Files: []status.FileDiff{{Path: hostile, Target: hostile, Kind: `"><script>`, Patch: patch}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := s.Admin(Access{Loopback: true})
	for _, path := range []string{
		"/", "/?find=" + url.QueryEscape(hostile) + "&state=" + url.QueryEscape(hostile), "/pipeline?name=" + url.QueryEscape(file), "/pipeline?name=team/web",
		"/runs?pipeline=team/web&run=run1", "/pipeline?name=" + url.QueryEscape(hostile), "/runs?pipeline=team/web&run=" + url.QueryEscape(hostile), "/none",
	} {
		response, body := get(t, h, path)
		if lower := strings.ToLower(withoutScript(body)); strings.Contains(lower, "<script") || strings.Contains(lower, "<img") || strings.Contains(lower, `href="javascript:`) {
			t.Errorf("%s holds markup of somebody else:\n%s", path, body)
		}
		if policy := response.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %q, %q", path, policy, response.Header.Get("Content-Type"))
		}
	}
}

func TestErrorsArePages(t *testing.T) {
	h := fixture(t).Admin(Access{Loopback: true})
	for path, want := range map[string]string{
		"/pipeline?name=none":          "There is no pipeline &#34;none&#34;.",
		"/pipeline":                    "There is no pipeline &#34;&#34;.",
		"/runs?pipeline=team/web":      "There is no such run of team/web",
		"/runs?pipeline=team/web&run=": "There is no such run of team/web",
		"/none":                        "There is no such page.",
	} {
		response, body := get(t, h, path)
		if response.StatusCode != http.StatusNotFound || !strings.Contains(body, want) || !strings.Contains(body, `href="/"`) {
			t.Errorf("%s: %s\n%s", path, response.Status, body)
		}
	}
	if response, _ := get(t, h, "/", func(r *http.Request) { r.Method = http.MethodPost; r.Header.Set("Authorization", "Bearer "+token) }); response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a post to a page: %s", response.Status)
	}
}

func TestPageOfARun(t *testing.T) {
	s := with(t, map[string]string{"web.yaml": fmt.Sprintf(object, "web", "config", "")})
	save(t, s.Store, "team/web", status.Published, "fine", true)
	var files []status.FileDiff
	for i := range 3 {
		files = append(files, status.FileDiff{
			Target: "oci://registry.example.com/web:latest", Path: fmt.Sprintf("f%d.yaml", i), Kind: "modified", Injected: []int{2}, InjectedBefore: []int{2}, LinesLeftOut: i * 7,
			Patch: "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n-mine: 1\n-proxy: 1\n+mine: 2\n+proxy: 2\n end\n" + strings.Repeat(" line\n", openLines/2),
		})
	}
	if err := s.Store.SaveDiff(t.Context(), "team/web", "run1", &status.Diff{Files: files, LeftOut: 5}); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, body := get(t, s.Admin(Access{Loopback: true}), "/runs?pipeline=team/web&run=run1")
	for _, want := range []string{
		`<tr class="del"><td class="n">1</td>`, `<tr class="del injected"><td class="n">2</td>`, `<tr class="add injected"><td class="n"></td><td class="n">2</td>`,
		"are the injection's: 6 of 12 that changed", "14 more lines of this file are not kept here", "5 more files are not kept here", `href="#file-2"`,
		`id="file-1" open`, "oci://registry.example.com/web:latest",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(body, `id="file-2" open`) {
		t.Error("a long difference is open at once")
	}
}

// TestHiddenCharactersOfARun has a manifest and its name turn a line round, and hide a character.
func TestHiddenCharactersOfARun(t *testing.T) {
	s := with(t, map[string]string{"web.yaml": fmt.Sprintf(object, "web", "config", "")})
	save(t, s.Store, "team/web", status.Published, "fine", true)
	file := status.FileDiff{Path: "a\u202eb.yaml", Kind: "modified", Patch: "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-image: a\n+image: \u2066a\u200bb\u2069\n\tend\n"}
	if err := s.Store.SaveDiff(t.Context(), "team/web", "run1", &status.Diff{Files: []status.FileDiff{file}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, body := get(t, s.Admin(Access{Loopback: true}), "/runs?pipeline=team/web&run=run1")
	for _, want := range []string{"a&lt;U&#43;202E&gt;b.yaml", "image: &lt;U&#43;2066&gt;a&lt;U&#43;200B&gt;b&lt;U&#43;2069&gt;"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.ContainsAny(body, "\u202e\u2066\u200b\u2069") {
		t.Error("the page has hidden characters")
	}
}

func TestCommitLinks(t *testing.T) {
	hash := strings.Repeat("ab", 20)
	for target, want := range map[string]string{
		"https://github.com/org/app.git rendered web": "https://github.com/org/app/commit/" + hash, "oci://registry.example.com/app:latest": "", "": "",
	} {
		if got := commitLink(target, "main@sha1:"+hash); got != want {
			t.Errorf("%s: got %q", target, got)
		}
	}
}

func TestUnknownPipelinesOfTheAPI(t *testing.T) {
	h := fixture(t).Admin(Access{Loopback: true})
	if response, body := get(t, h, "/api/v1/pipelines?pipeline=team/web&pipeline=none"); response.StatusCode != http.StatusNotFound || !strings.Contains(body, "there is no pipeline none") {
		t.Errorf("%s: %s", response.Status, body)
	}
}
