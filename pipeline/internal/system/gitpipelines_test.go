// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	prerig "github.com/prerig/prerig/pipeline/server"
)

// fromGit has the pipelines in a directory of a repository, which is looked at on events only.
func fromGit(t *testing.T, repository func(f *fixture) *gittest.Repository) (*fixture, *gittest.Repository) {
	t.Helper()
	f := prepare(t, nil)
	r := repository(f)
	f.c.Pipelines = ""
	f.c.PipelinesGit = config.PipelinesGit{URL: r.URL, Branch: "main", Path: "pipelines", Interval: time.Hour}
	return f, r
}

func same(f *fixture) *gittest.Repository { return f.repository }

// app is a pipeline in the repository with what it renders.
func app(f *fixture, name, image string) map[string]string {
	return map[string]string{
		"pipelines/" + name + ".yaml":         pipelineYAML(name, f.repository.URL),
		"apps/" + name + "/" + name + ".yaml": deployment(name, image),
	}
}

// states returns the pipelines' states.
func (f *fixture) states() map[string]string {
	out := map[string]string{}
	for _, p := range f.pipelines() {
		out[p.Name] = p.State
	}
	return out
}

func (f *fixture) becomes(name, state string) prerig.Pipeline {
	f.t.Helper()
	var found prerig.Pipeline
	f.eventually("waiting for "+name+" to be "+state, func() string {
		for _, p := range f.pipelines() {
			found = p
			if p.Name == name && p.State == state {
				return ""
			}
		}
		if state == "" && f.states()[name] == "" {
			return ""
		}
		return fmt.Sprint(f.states())
	})
	return found
}

// catalog asks where the pipelines are from.
func (f *fixture) catalog() prerig.Catalog {
	f.t.Helper()
	resp, err := http.Get("http://" + f.page + "/api/v1/catalog")
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out prerig.Catalog
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		f.t.Fatal(err)
	}
	return out
}

func TestAPipelineAndItsApplicationComeWithOnePush(t *testing.T) {
	f, r := fromGit(t, same)
	r.Commit("first", app(f, "web", "web:1"))
	f.start()
	f.shows("web/shop/deployment-web.yaml", "image: web:1")

	// Added: nothing but the push tells of it.
	if status := f.push(r.Commit("one more", app(f, "api", "api:1"))); status != http.StatusAccepted {
		t.Fatalf("the webhook was answered with %d", status)
	}
	f.shows("api/shop/deployment-api.yaml", "image: api:1")

	// Changed.
	moved := pipelineYAML("api", r.URL)
	moved = strings.Replace(moved, "build: {path: apps/api}", "build: {path: apps/web}", 1)
	f.push(r.Commit("another application", map[string]string{"pipelines/api.yaml": moved}))
	f.shows("api/shop/deployment-web.yaml", "image: web:1")

	// Broken: the others go on, and the error says where.
	broken := r.Commit("a mistake", map[string]string{
		"pipelines/api.yaml":   strings.Replace(moved, "  build:", "  biuld:", 1),
		"apps/web/web.yaml":    deployment("web", "web:2"),
		"pipelines/local.yaml": strings.Replace(strings.Replace(pipelineYAML("local", r.URL), "git: {branch", "git: {url: "+r.URL+", branch", 1), "{git: {url: "+r.URL+", ref: {branch: main}}}", "{dir: {path: ../apps}}", 1),
	})
	f.push(broken)
	f.shows("web/shop/deployment-web.yaml", "image: web:2")
	for name, want := range map[string][]string{
		"team/api":   {"pipelines/api.yaml", "line 6: spec.biuld: unknown field, did you mean build?", "main@sha1:" + broken},
		"team/local": {"pipelines/local.yaml", "line 5: spec.source.dir.path: must be absolute", broken},
	} {
		p := f.becomes(name, prerig.StateInvalid)
		for _, text := range want {
			if !strings.Contains(p.Message, text) {
				t.Errorf("%s: %q lacks %q", name, p.Message, text)
			}
		}
	}
	if got := f.rendered("api/shop/deployment-web.yaml"); !strings.Contains(got, "image: web:1") {
		t.Errorf("the last good output of a broken pipeline:\n%s", got)
	}
	// A commit beside it does not make the mistake a new one.
	f.push(r.Commit("beside", map[string]string{"apps/web/web.yaml": deployment("web", "web:3")}))
	f.shows("web/shop/deployment-web.yaml", "image: web:3")
	if p := f.becomes("team/api", prerig.StateInvalid); !strings.Contains(p.Message, broken) {
		t.Errorf("the mistake is blamed on another commit: %s", p.Message)
	}

	// Removed.
	f.push(r.Commit("away", map[string]string{"pipelines/local.yaml": "", "pipelines/api.yaml": ""}))
	f.becomes("team/api", "")
	f.becomes("team/local", "")
}

// TestThePipelinesServerIsAway has the pipelines in a private repository on another server than the applications.
func TestThePipelinesServerIsAway(t *testing.T) {
	var away atomic.Bool
	f, r := fromGit(t, func(f *fixture) *gittest.Repository {
		s := gittest.New(f.t)
		s.Username, s.Password = "robot", "a secret token"
		s.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
			if away.Load() {
				http.Error(w, "away", http.StatusServiceUnavailable)
			}
			return away.Load()
		})
		return s.Repository(f.t, "pipelines")
	})
	f.c.PipelinesGit.Interval, f.c.PipelinesGit.Secret = time.Second, "platform/git"
	f.write(filepath.Join(f.c.Secrets, "platform/git/.hosts"), r.URL)
	f.write(filepath.Join(f.c.Secrets, "platform/git/username"), "robot")
	f.write(filepath.Join(f.c.Secrets, "platform/git/password"), "a secret token\n")
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1"), "apps/api/api.yaml": deployment("api", "api:1")})
	r.Commit("first", map[string]string{"pipelines/web.yaml": pipelineYAML("web", f.repository.URL)})
	f.start()
	f.shows("web/shop/deployment-web.yaml", "image: web:1")

	// By the interval alone: nobody tells of this push.
	r.Commit("second", map[string]string{"pipelines/api.yaml": pipelineYAML("api", f.repository.URL)})
	f.shows("api/shop/deployment-api.yaml", "image: api:1")

	away.Store(true)
	f.eventually("waiting for the daemon to say that the server is away", func() string {
		if c := f.catalog(); !strings.Contains(c.Error, r.URL) || !strings.Contains(c.Error, "503") {
			return c.Error
		}
		return ""
	})
	f.push(f.repository.Commit("second", map[string]string{"apps/web/web.yaml": deployment("web", "web:2")}))
	f.shows("web/shop/deployment-web.yaml", "image: web:2")
	last := r.Commit("third", map[string]string{"pipelines/api.yaml": ""})

	// Started again while it is away, the daemon begins with what it knew.
	f.stop()
	f.start()
	if got := f.states(); len(got) != 2 {
		t.Errorf("after a restart: %v", got)
	}
	f.push(f.repository.Commit("third", map[string]string{"apps/api/api.yaml": deployment("api", "api:2")}))
	f.shows("api/shop/deployment-api.yaml", "image: api:2")
	if c := f.catalog(); c.Error == "" || strings.Contains(c.Revision, last) {
		t.Errorf("after a restart: %+v", c)
	}
	away.Store(false)
	f.becomes("team/api", "")
	if c := f.catalog(); c.Error != "" || c.Revision != "main@sha1:"+last || c.Pipelines != 1 {
		t.Errorf("with the server back: %+v", c)
	}
}

// TestACommitThatCannotBeReadChangesNothing empties the directory of pipelines, which leaves it out of the commit.
func TestACommitThatCannotBeReadChangesNothing(t *testing.T) {
	f, r := fromGit(t, same)
	r.Commit("first", app(f, "web", "web:1"))
	f.start()
	f.shows("web/shop/deployment-web.yaml", "image: web:1")
	gone := r.Commit("empty", map[string]string{"pipelines/web.yaml": "", "apps/web/web.yaml": deployment("web", "web:2")})
	f.push(gone)
	f.shows("web/shop/deployment-web.yaml", "image: web:2")
	if c := f.catalog(); !strings.Contains(c.Error, "there is no directory pipelines") || !strings.Contains(c.Error, gone) {
		t.Errorf("the error: %q", c.Error)
	}
}

// TestWorkersHaveTheSamePipelines runs a worker in a process of its own, which never hears of an event.
func TestWorkersHaveTheSamePipelines(t *testing.T) {
	nats := startNATS(t)
	f, r := fromGit(t, same)
	f.c.NATS.URL, f.c.Workers = nats, 0
	r.Commit("first", app(f, "web", "web:1"))
	f.start()
	away := *f.c
	away.Workers, away.State = 1, t.TempDir()
	c := &chaos{fixture: f, logs: filepath.Join(t.TempDir(), "log")}
	c.serve(&away, true)
	f.shows("web/shop/deployment-web.yaml", "image: web:1")
	for i := range 3 {
		name := fmt.Sprintf("api%d", i)
		f.push(r.Commit(name, app(f, name, name+":1")))
		f.shows(name+"/shop/deployment-"+name+".yaml", "image: "+name+":1")
	}
}

// TestRemovalsFromGit removes a pipeline with its files by a push, and then all that are left, which waits for a word.
func TestRemovalsFromGit(t *testing.T) {
	f, r := fromGit(t, func(f *fixture) *gittest.Repository { return f.git.Repository(f.t, "pipelines") })
	f.c.PipelinesGit.Path, f.c.Removals.Delay = "", 300*time.Millisecond
	f.c.PipelinesGit.Branch = "" // the default one
	apps, files := map[string]string{}, map[string]string{"README.md": "which are run"}
	for _, name := range []string{"web", "api"} {
		apps["apps/"+name+"/app.yaml"] = deployment(name, name+":1")
		files[name+".yaml"] = pipelineYAML(name, f.repository.URL, deletes)
	}
	f.repository.Commit("first", apps)
	r.Commit("first", files)
	f.start()
	f.allShow("web", "api")
	tell := func(commit string) {
		t.Helper()
		body, err := json.Marshal(map[string]any{"git": map[string]any{"urls": []string{r.URL}, "ref": "refs/heads/main", "after": commit}})
		if err != nil {
			t.Fatal(err)
		}
		if status, err := post(f.hooks, body, commit); err != nil || status != http.StatusAccepted {
			t.Fatalf("an event about the repository of pipelines was answered with %d, %v", status, err)
		}
	}
	tell(r.Commit("one away", map[string]string{"api.yaml": ""}))
	f.removed("api")
	if got := f.rendered("api/shop/deployment-api.yaml"); got != "" {
		t.Errorf("its file is there:\n%s", got)
	}
	tell(r.Commit("all away", map[string]string{"web.yaml": ""}))
	f.removal("web", prune.Held)
	if got := f.rendered("web/shop/deployment-web.yaml"); got == "" {
		t.Error("the last file was deleted")
	}
	tell(r.Commit("back", map[string]string{"web.yaml": files["web.yaml"]}))
	f.becomes("team/web", prerig.StateReady)
	if got := f.catalog().Removals; len(got) > 0 {
		t.Errorf("waiting: %+v", got)
	}
}
