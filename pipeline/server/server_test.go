// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

const token = "a token of some length"

// hostile is a name of a branch and a message that a page must not take for markup.
const hostile = `<script>document.title="taken"</script>`

// fixture is a server with three pipelines: one that ran, one that failed, one that is not valid any more.
func fixture(t *testing.T) *Server {
	t.Helper()
	files := map[string]string{
		"broken.yaml": "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: broken}\nspec: {sauce: {}}\n",
	}
	for _, name := range []string{"web", "cart"} {
		files[name+".yaml"] = fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s, namespace: team}\nspec: {source: {git: {url: https://git.example.com/config.git}}}\n", name)
	}
	s := with(t, files)
	save(t, s.Store, "team/web", status.Published, "2 objects; 0 files added, 1 changed, 0 removed", true)
	save(t, s.Store, "team/cart", status.Failed, hostile, false)
	save(t, s.Store, "broken", status.Published, "done while it was valid", false)
	if err := s.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func save(t testing.TB, store *status.Store, name, outcome, message string, diff bool) {
	t.Helper()
	state := &status.State{}
	now := time.Now()
	state.Ready(now, outcome == status.Published, "Reason", message, outcome != status.Published)
	run := status.Run{Run: v1alpha1.Run{ID: "run1", Revision: "main@sha1:" + strings.Repeat("ab", 20), Outcome: outcome, Message: message,
		Started: metav1.NewTime(now), Finished: metav1.NewTime(now.Add(80 * time.Millisecond))},
		Took: 80 * time.Millisecond, Reason: "event from git", Cause: "0123456789abcdef", Diff: diff, Findings: []string{"warning: " + hostile},
		Published: []v1alpha1.Published{{Target: "https://git.example.com/config.git rendered web", Revision: strings.Repeat("cd", 20), SourceRevision: "main@sha1:" + strings.Repeat("ab", 20)}}}
	state.Add(run, 5)
	state.Status.Published = run.Published
	if _, err := store.Save(t.Context(), name, state, 0); err != nil {
		t.Fatal(err)
	}
	if !diff {
		return
	}
	patch := "--- a/f\n+++ b/f\n@@ -1,4 +1,6 @@\n spec:\n   containers:\n-  - image: web:1\n+  - image: web:2\n+  - name: istio-proxy\n+    image: proxyv2:1.31 # " + hostile + "\n   restartPolicy: Always\n"
	err := store.SaveDiff(t.Context(), name, "run1", &status.Diff{Files: []status.FileDiff{{Target: "rendered", Path: "shop/deployment-web.yaml", Kind: "modified", Patch: patch, Injected: []int{4, 5}}}})
	if err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, h http.Handler, path string, change ...func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "localhost:8081"
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Result().Body)
	return w.Result(), string(body)
}

// withoutScript is a page without the one script that it may have.
func withoutScript(body string) string {
	return regexp.MustCompile(`<script src="/page.js" nonce="[A-Z2-7]{26}" defer></script>`).ReplaceAllString(body, "")
}

func TestPages(t *testing.T) {
	h := fixture(t).Admin(Access{Loopback: true})
	for path, want := range map[string][]string{
		"/":                                {"team/web", "team/cart", "broken", "Ready", "Stalled", "Invalid", "spec.sauce: unknown field", "v1.2.3"},
		"/?state=Ready":                    {"team/web"},
		"/?find=cart":                      {"team/cart"},
		"/pipeline?name=team/web":          {"Published", "event from git", "80ms", "/runs?pipeline=team%2fweb&amp;run=run1"},
		"/pipeline?name=broken":            {"spec.sauce: unknown field", "done while it was valid"},
		"/runs?pipeline=team/web&run=run1": {`class="add injected"`, "istio-proxy", "web:1", "Marked lines", "shop/deployment-web.yaml"},
		"/style.css":                       {".injected"},
		"/healthz":                         {"ok"},
		"/readyz":                          {"ok"},
	} {
		response, body := get(t, h, path)
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, response.Status)
		}
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s lacks %q:\n%s", path, text, body)
			}
		}
		if strings.Contains(withoutScript(body), "<script") {
			t.Errorf("%s holds a script", path)
		}
		if strings.Contains(path, "?") || path == "/" {
			if policy := response.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") {
				t.Errorf("%s: policy %q", path, policy)
			}
		}
	}
	if _, body := get(t, h, "/?state=Ready"); strings.Contains(body, "team/cart") {
		t.Error("the filter shows others")
	}
	for _, path := range []string{"/pipeline?name=none", "/runs?pipeline=team/web&run=none", "/none"} {
		if response, _ := get(t, h, path); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, response.Status)
		}
	}
}

func TestInjectedLinesAreMarkedAndOthersNot(t *testing.T) {
	_, body := get(t, fixture(t).Admin(Access{Loopback: true}), "/runs?pipeline=team/web&run=run1")
	for line, want := range map[string]bool{"- image: web:2": false, "- name: istio-proxy": true, "restartPolicy: Always": false} {
		before, _, found := strings.Cut(body, line)
		row := before[strings.LastIndex(before, "<tr"):]
		if !found || strings.Contains(row, "injected") != want {
			t.Errorf("%q: found %v in %s", line, found, row)
		}
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	s := fixture(t)
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	wrong := func(r *http.Request) { r.Header.Set("Authorization", "Bearer wrong") }
	basic := func(r *http.Request) { r.SetBasicAuth("anybody", token) }
	post := func(r *http.Request) { r.Method = http.MethodPost }
	elsewhere := func(r *http.Request) { r.Host = "evil.example.com" }
	nothing := func(*http.Request) {}
	for name, tc := range map[string]struct {
		access Access
		path   string
		change []func(*http.Request)
		want   int
	}{
		"look on loopback":               {Access{Loopback: true}, "/", []func(*http.Request){nothing}, 200},
		"look under another name":        {Access{Loopback: true}, "/", []func(*http.Request){elsewhere}, 421},
		"change without a token":         {Access{Loopback: true}, "/api/v1/suspend", []func(*http.Request){post}, 401},
		"change with a wrong token":      {Access{Loopback: true}, "/api/v1/suspend", []func(*http.Request){post, wrong}, 401},
		"change with a password":         {Access{Loopback: true}, "/api/v1/suspend", []func(*http.Request){post, basic}, 403},
		"change with the token":          {Access{Loopback: true}, "/api/v1/suspend", []func(*http.Request){post, bearer}, 400},
		"look from afar":                 {Access{}, "/", []func(*http.Request){elsewhere}, 401},
		"look from afar with the token":  {Access{}, "/", []func(*http.Request){elsewhere, bearer}, 200},
		"look from afar with a password": {Access{}, "/", []func(*http.Request){elsewhere, basic}, 200},
		"look where everybody may":       {Access{Insecure: true}, "/", []func(*http.Request){elsewhere}, 200},
		"change where everybody looks":   {Access{Insecure: true}, "/api/v1/reconcile", []func(*http.Request){elsewhere, post}, 401},
		"health from afar":               {Access{}, "/healthz", []func(*http.Request){elsewhere}, 200},
		"socket":                         {Access{Trusted: true}, "/api/v1/suspend", []func(*http.Request){post}, 400},
		"socket under any name":          {Access{Trusted: true}, "/api/v1/suspend", []func(*http.Request){func(r *http.Request) { r.Host = "prerig" }, post}, 400},
		"socket under another name":      {Access{Trusted: true}, "/api/v1/suspend", []func(*http.Request){elsewhere, post}, 421},
	} {
		if response, body := get(t, s.Admin(tc.access), tc.path, tc.change...); response.StatusCode != tc.want {
			t.Errorf("%s: got %d, want %d: %s", name, response.StatusCode, tc.want, body)
		}
	}
}

func TestHooksServeNothingElse(t *testing.T) {
	h := fixture(t).Hooks()
	for path, want := range map[string]int{"/healthz": 200, "/": 404, "/api/v1/pipelines": 404, "/metrics": 404, "/hook/none": 404} {
		if response, _ := get(t, h, path); response.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, response.StatusCode, want)
		}
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, ":1": false, "0.0.0.0:1": false, "10.0.0.1:1": false} {
		if Loopback(address) != want {
			t.Errorf("%s: want %v", address, want)
		}
	}
}

// TestInChromium looks at the pages with a browser: they show what they hold, run nothing and load nothing from elsewhere.
// PRERIG_SCREENSHOTS names a directory for pictures of them.
func TestInChromium(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		if browser, err = exec.LookPath("chromium-browser"); err != nil {
			t.Skip("chromium is not installed")
		}
	}
	ts := httptest.NewServer(fixture(t).Admin(Access{Loopback: true}))
	defer ts.Close()
	pictures := os.Getenv("PRERIG_SCREENSHOTS")
	if pictures == "" {
		pictures = t.TempDir()
	}
	const narrow, dark = "--window-size=420,900", "--blink-settings=preferredColorScheme=0"
	for name, tc := range map[string]struct {
		path    string
		looking []string
	}{
		"list": {"/", nil}, "pipeline": {"/pipeline?name=team/web", nil}, "run": {"/runs?pipeline=team/web&run=run1", nil},
		"list-narrow": {"/", []string{narrow}}, "run-narrow-dark": {"/runs?pipeline=team/web&run=run1", []string{narrow, dark}},
	} {
		path := tc.path
		run := func(args ...string) string {
			ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
			defer cancel()
			common := []string{"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--user-data-dir=" + t.TempDir()}
			if tc.looking == nil {
				common = append(common, "--window-size=1280,900")
			}
			common = append(common, tc.looking...)
			out, err := exec.CommandContext(ctx, browser, append(append(common, args...), ts.URL+path)...).Output()
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			return string(out)
		}
		dom := run("--dump-dom")
		if strings.Contains(dom, "<title>taken") || !strings.Contains(dom, "Prerig</title>") || !strings.Contains(dom, "team/web") {
			t.Errorf("%s shows:\n%s", path, dom)
		}
		picture := filepath.Join(pictures, name+".png")
		run("--screenshot=" + picture)
		if info, err := os.Stat(picture); err != nil || info.Size() < 5000 {
			t.Errorf("%s: the picture is missing or empty: %v", path, err)
		}
	}
}
