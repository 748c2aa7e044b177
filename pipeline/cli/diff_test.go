// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/review/dryrun"
	"github.com/prerig/prerig/pipeline/server"
)

// TestDiffOfEveryPlace publishes to a branch, a proposal and an artifact, and compares a change with all of them.
func TestDiffOfEveryPlace(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	images := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(images.Close)
	artifact := "oci://" + strings.TrimPrefix(images.URL, "http://") + "/rendered/web"
	pipelines := t.TempDir()
	pipeline := func(places string) {
		text := "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: web}\nspec:\n  source: {git: {url: " + repository.URL +
			", ref: {branch: main}}}\n  build: {path: apps/web}\n  policies: [{builtIn: istio}]\n  publish:\n" + places
		if err := os.WriteFile(filepath.Join(pipelines, "web.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	places := "  - git: {branch: rendered}\n  - git: {branch: prod, path: web, propose: {}}\n  - oci: {url: \"" + artifact + "\", insecure: true, layout: Single, tags: [v1]}\n"
	pipeline(places)
	repository.Commit("first", map[string]string{"apps/web/app.yaml": application("web", "app:1")})
	cache := t.TempDir()
	diff := func(want int, more ...string) (string, *dryrun.Comparison) {
		t.Helper()
		args := append([]string{"diff", "--pipelines", pipelines, "--cache", cache, "-o", "json"}, more...)
		code, out, problems := prerig(t, args...)
		if code != want {
			t.Fatalf("exit code %d, want %d\n%s%s", code, want, out, problems)
		}
		var c dryrun.Comparison
		if err := json.Unmarshal([]byte(out), &c); err != nil {
			t.Fatal(err)
		}
		return problems, &c
	}
	counts := func(c *dryrun.Comparison) (out []string) {
		for _, p := range c.Pipelines[0].Targets {
			out = append(out, fmt.Sprintf("%d %d %d %d", p.Added, p.Modified, p.Deleted, p.Unchanged))
		}
		return out
	}
	// Nothing is published yet.
	if _, c := diff(1); !cmp.Equal(counts(c), []string{"1 0 0 0", "1 0 0 0", "1 0 0 0"}) || len(c.Changes) != 1 || len(c.Changes[0].Objects) != 1 || len(c.Changes[0].Objects[0].Places) != 3 {
		t.Errorf("got %+v", c)
	}
	state, page := serve(t, pipelines)
	if code, out, problems := prerig(t, "daemon", "reconcile", "--all", "--wait", "--state", state); code != 0 {
		t.Fatal(out, problems)
	}
	// The branch and the artifact are as rendered; what is proposed is not active before somebody merges it.
	_, c := diff(1)
	if !cmp.Equal(counts(c), []string{"0 0 0 1", "1 0 0 0", "0 0 0 1"}) {
		t.Errorf("got %+v", c.Pipelines)
	}
	var against []string
	for _, p := range c.Pipelines[0].Targets {
		against = append(against, p.Against)
	}
	want := []string{"branch rendered of " + repository.URL, "active branch prod of " + repository.URL + " (what is proposed goes to prod-next)", "artifact " + artifact + ":v1"}
	if !cmp.Equal(against, want) {
		t.Error(cmp.Diff(want, against))
	}
	repository.Git("branch", "prod", "prod-next")
	if _, c := diff(0); !cmp.Equal(counts(c), []string{"0 0 0 1", "0 0 0 1", "0 0 0 1"}) {
		t.Errorf("after the merge: %+v", c.Pipelines)
	}
	work := t.TempDir()
	if err := os.MkdirAll(filepath.Join(work, "apps/web"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "apps/web/app.yaml"), []byte(application("web", "app:2")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, c := diff(1, "--source", work); !cmp.Equal(counts(c), []string{"0 1 0 0", "0 1 0 0", "0 1 0 0"}) || len(c.Changes) != 1 ||
		c.Changes[0].Hunks[0].At != "spec.template.spec.containers[app].image" || len(c.Changes[0].Objects[0].Places) != 3 {
		t.Errorf("a change: %+v", c)
	}
	pageOfARun(t, repository, state, page, artifact+":v1")
	// One place that cannot be read hides no other.
	closed := httptest.NewServer(nil)
	closed.Close()
	pipeline(places + "  - oci: {url: \"oci://" + strings.TrimPrefix(closed.URL, "http://") + "/x\", insecure: true}\n")
	problems, c := diff(2, "--source", work)
	if !strings.Contains(problems, "error: web: oci://") || !strings.Contains(problems, "reading what is published") || len(c.Changes) != 2 || c.Pipelines[0].Targets[3].Error == "" {
		t.Errorf("a registry that does not answer: %s, %+v", problems, c)
	}
	code, out, _ := prerig(t, "diff", "--pipelines", pipelines, "--cache", cache, "--source", work)
	if code != 2 || !strings.Contains(out, "+        image: app:2") || !strings.Contains(out, "error: web: oci://") || !strings.Contains(out, "1 place could not be read") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	// A branch of somebody else would be refused.
	repository.Git("branch", "theirs", "main")
	pipeline("  - git: {branch: theirs}\n")
	if problems, c := diff(2); !strings.Contains(problems, "would be refused: the branch exists and is not written by Prerig") && !strings.Contains(problems, "not written by Prerig") || c.Pipelines[0].Targets[0].Gate == "" {
		t.Errorf("somebody else's branch: %s", problems)
	}
	// What publishes nowhere is rendered, and differs from nothing.
	pipeline("")
	if _, c := diff(0); len(c.Pipelines[0].Targets) != 0 {
		t.Errorf("got %+v", c)
	}
}

// pageOfARun publishes a change and looks for it on the page of the run, at each place.
func pageOfARun(t *testing.T, repository *gittest.Repository, state, page, artifact string) {
	t.Helper()
	repository.Commit("second", map[string]string{"apps/web/app.yaml": application("web", "app:3")})
	if code, out, problems := prerig(t, "daemon", "reconcile", "--all", "--wait", "--state", state); code != 0 {
		t.Fatal(out, problems)
	}
	_, out, _ := prerig(t, "daemon", "status", "web", "-o", "json", "--state", state)
	var found []server.Pipeline
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) != 1 || len(found[0].Runs) == 0 {
		t.Fatal(err, out)
	}
	run := found[0].Runs[0]
	if run.Message != "1 object; 0 files added, 3 changed, 0 removed" {
		t.Errorf("the run says %q", run.Message)
	}
	response, err := http.Get("http://" + page + "/runs?pipeline=web&run=" + run.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(body); strings.Count(text, "- image: app:3") != 0 || strings.Count(text, "image: app:3</td>") != 3 || !strings.Contains(text, "manifests.yaml <span class=\"minor\">"+artifact) {
		t.Errorf("the page shows:\n%s", text)
	}
}

// TestWrongInput: each gives one line that says what to do, and exit code 2.
func TestWrongInput(t *testing.T) {
	repository, pipelines := fleet(t, "cart", "web")
	none, empty := filepath.Join(t.TempDir(), "none"), t.TempDir()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"render of an unknown name":         {[]string{"render", "wbe", "--pipelines", pipelines}, "no pipeline wbe in " + pipelines + "\n"},
		"diff of a name that is nearly one": {[]string{"diff", "team/crt", "--pipelines", pipelines}, "; did you mean team/cart?\n"},
		"no directory of pipelines":         {[]string{"diff", "--pipelines", none}, none + " is not a directory; specify it with --pipelines, or write pipelines with prerig init --source .; prerig review needs none\n"},
		"no pipelines":                      {[]string{"render", "--pipelines", empty}, "no pipelines in " + empty + "; write some with prerig init"},
		"no source directory":               {[]string{"diff", "--pipelines", pipelines, "--source", none}, "reading the flag --source: " + none + " is not a directory\n"},
		"no directory to compare with":      {[]string{"diff", "--pipelines", pipelines, "--against", none}, "reading the flag --against: " + none + " is not a directory\n"},
		"an unknown output":                 {[]string{"diff", "-o", "html"}, `--output is "html"; it can be text, markdown, review, json or yaml` + "\n"},
		"affected without a range":          {[]string{"affected", "--pipelines", pipelines}, "specify one range of commits, BASE..HEAD, such as origin/main..HEAD; found 0 arguments\n"},
		"affected with half a range":        {[]string{"affected", "main", "--pipelines", pipelines}, `found "main"` + "\n"},
		"affected with three dots":          {[]string{"affected", "a...b", "--pipelines", pipelines}, `found "a...b"` + "\n"},
		"affected with an unknown revision": {[]string{"affected", "nope..HEAD", "-C", repository.Work, "--pipelines", pipelines}, `finding the revision "nope": the repository has no such branch, tag or commit; check the name, or fetch it`},
		"affected before the first commit":  {[]string{"affected", "HEAD~9..HEAD", "-C", repository.Work, "--pipelines", pipelines}, "the repository has no such branch, tag or commit"},
		"affected outside of a repository":  {[]string{"affected", "a..b", "-C", empty, "--pipelines", pipelines}, "repository does not exist; specify its directory with -C\n"},
		"affected in another repository":    {[]string{"affected", "HEAD..HEAD", "-C", repository.Work, "--pipelines", pipelines}, "set --url to the URL that the pipelines use\n"},
		"no daemon":                         {[]string{"daemon", "status", "--state", none}, "is it running (prerig serve), and is --state its directory?"},
		"no daemon at a URL":                {[]string{"daemon", "status", "--server", "http://127.0.0.1:1"}, "calling the daemon at http://127.0.0.1:1: connection refused; is the daemon running, and is this its --admin-listen?\n"},
		"an unknown state":                  {[]string{"daemon", "status", "--only", "Broken"}, `found "Broken"` + "\n"},
		"watching JSON":                     {[]string{"daemon", "status", "--watch", "-o", "json"}, "the flag --watch supports text only, not json\n"},
		"suspend of nothing":                {[]string{"daemon", "suspend"}, "no pipeline specified: prerig daemon suspend PIPELINE...\n"},
		"reconcile of nothing":              {[]string{"daemon", "reconcile"}, "no pipeline specified: name pipelines, or set --all\n"},
		"an unknown flag":                   {[]string{"diff", "--colour"}, "unknown flag: --colour; see prerig diff --help\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, problems := prerig(t, tc.args...)
			if code != ExitError || out != "" || !strings.HasPrefix(problems, "error: ") || strings.Count(problems, "\n") != 1 || !strings.Contains(problems, tc.want) {
				t.Errorf("exit code %d\n%s%s", code, out, problems)
			}
		})
	}
}

func TestClosest(t *testing.T) {
	known := []string{"team-a/cart", "team-a/card-service", "team-b/cart", "team-b/web", "mail"}
	for name, want := range map[string][]string{
		"cart":        {"team-a/cart", "team-b/cart"},
		"team-c/web":  {"team-b/web"},
		"team-a/crat": {"team-a/cart"},
		"team-a/crt":  {"team-a/cart"},
		"malil":       {"mail"},
		"service":     {"team-a/card-service"},
		"":            nil,
		"zzz":         nil,
	} {
		if got := closestNames(name, known, 3); !cmp.Equal(got, want) {
			t.Errorf("%q: got %q", name, got)
		}
	}
}
