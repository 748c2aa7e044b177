// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/statetest"
	"github.com/prerig/prerig/pipeline/server"
)

// takeoverAddress is where the Git server of recorded states is, as URLs of it are in them. It is of this machine alone, as all of 127/8.
const takeoverAddress = "127.77.1.22:18922"

// What a recorded state has beside the daemon's own directory.
const (
	takeoverRepositories = "git"
	takeoverPipelines    = "pipelines.json" // what the older daemon told of its pipelines at the end
)

// TestTakesOverOlderState starts the daemon on what older versions have left: runs, suspensions and holds are as they were, nothing is
// committed that is published already, and what moves next is published as before. testdata/states/README.md says how they are recorded.
func TestTakesOverOlderState(t *testing.T) {
	archives, err := filepath.Glob("testdata/states/*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("there are no states: %v", err)
	}
	for _, archive := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), func(t *testing.T) { takeOver(t, archive) })
	}
}

func takeOver(t *testing.T, archive string) {
	dir := statetest.Dir(t)
	unpackTarGz(t, archive, dir)
	f := recordedFixture(t, dir)
	var before []server.Pipeline
	text, err := os.ReadFile(filepath.Join(dir, takeoverPipelines))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &before); err != nil || len(before) != len(takeoverNames) {
		t.Fatalf("the older daemon has told of %d pipelines: %v", len(before), err)
	}
	published, commits := f.repository.Git("rev-parse", "rendered"), f.commits()
	f.start()
	f.isAsBefore(before)

	var answer server.Answer
	overSocket(t, f.c.Socket(), http.MethodPost, "/api/v1/reconcile", server.Request{All: true}, &answer)
	f.eventually("the request for all of them", func() string {
		for _, p := range f.pipelines() {
			if p.OpenRequest != "" && !p.Suspended {
				return fmt.Sprintf("%s has not handled %s: %s %s", p.Name, p.OpenRequest, p.State, p.Message)
			}
		}
		return ""
	})
	f.isAsBefore(before)
	if now := f.repository.Git("rev-parse", "rendered"); now != published {
		t.Errorf("what was published already is committed again: %s", f.repository.Git("log", "--stat", published+".."+now))
	}

	// What moves next is published once, and only of those that may.
	third := f.repository.Commit("third", map[string]string{
		"apps/web/web.yaml": deployment("web", "web:3"), "apps/paused/web.yaml": deployment("paused", "paused:3"), "apps/held/web.yaml": deployment("held", "held:3"),
	})
	if status := f.push(third); status != http.StatusAccepted {
		t.Fatalf("the webhook was answered with %d", status)
	}
	f.shows("web/shop/deployment-web.yaml", "image: web:3")
	if got := f.rendered("paused/shop/deployment-paused.yaml"); !strings.Contains(got, "image: paused:1") {
		t.Errorf("the suspended pipeline has published:\n%s", got)
	}
	holds := false
	for _, p := range before {
		holds = holds || p.OnHold != nil
	}
	if got := f.rendered("held/shop/deployment-held.yaml"); holds && !strings.Contains(got, "image: held:1") {
		t.Errorf("the pipeline on hold has published:\n%s", got)
	}
	overSocket(t, f.c.Socket(), http.MethodPost, "/api/v1/suspend", server.Request{Pipelines: []string{"team/paused"}}, &answer)
	if holds {
		overSocket(t, f.c.Socket(), http.MethodPost, "/api/v1/promote", server.Request{Pipelines: []string{"team/held"}}, &answer)
	}
	f.shows("paused/shop/deployment-paused.yaml", "image: paused:3")
	f.shows("held/shop/deployment-held.yaml", "image: held:3")
	if made := f.commits() - commits; made < 1 || made > 3 {
		t.Errorf("%d commits for three changes", made)
	}
}

// recordedFixture is a fixture upon a recorded state: its repositories are served where they were.
func recordedFixture(t *testing.T, dir string) *fixture {
	t.Helper()
	f := prepareAlone(t, nil)
	f.git = gittest.NewAt(t, takeoverAddress)
	if err := os.Rename(filepath.Join(dir, takeoverRepositories, "config.git"), filepath.Join(f.git.Root, "config.git")); err != nil {
		t.Fatal(err)
	}
	f.repository = f.git.Existing(t, "config")
	f.c.State, f.c.Pipelines, f.c.Policies = filepath.Join(dir, "state"), filepath.Join(dir, "pipelines"), filepath.Join(dir, "policies")
	return f
}

// isAsBefore waits until pipelines are what they were, with all runs that they had.
func (f *fixture) isAsBefore(before []server.Pipeline) {
	f.t.Helper()
	tip := f.repository.Git("rev-parse", "rendered")
	f.eventually("pipelines as they were", func() string {
		now := map[string]server.Pipeline{}
		for _, p := range f.pipelines(takeoverKeys()...) {
			now[p.Name] = p
		}
		for _, was := range before {
			is, ok := now[was.Name]
			if !ok {
				return was.Name + " is missing"
			}
			if is.State != was.State || is.Suspended != was.Suspended || (is.OnHold == nil) != (was.OnHold == nil) {
				return fmt.Sprintf("%s was %s (suspended %t, on hold %v) and is %s (suspended %t, on hold %v): %s", was.Name,
					was.State, was.Suspended, was.OnHold, is.State, is.Suspended, is.OnHold, is.Message)
			}
			if was.OnHold != nil && (is.OnHold.Reason != was.OnHold.Reason || !is.OnHold.Since.Equal(was.OnHold.Since)) {
				return fmt.Sprintf("%s was on hold by %+v and is by %+v", was.Name, was.OnHold, is.OnHold)
			}
			if problem := keepsRuns(was, is, tip); problem != "" {
				return problem
			}
		}
		return ""
	})
}

// keepsRuns says which run of a pipeline is lost, or what else is published than was. A failure that comes again is told of as one, and what
// was looked at again is known to be in the commit at the branch's tip.
func keepsRuns(was, is server.Pipeline, tip string) string {
	ids, outcomes := map[string]bool{}, map[string]bool{}
	for _, run := range is.Runs {
		ids[run.ID+run.Revision+run.Finished.String()], outcomes[run.Revision+run.Outcome] = true, true
	}
	for _, run := range was.Runs {
		if !outcomes[run.Revision+run.Outcome] || run.Outcome == "Published" && !ids[run.ID+run.Revision+run.Finished.String()] {
			return fmt.Sprintf("%s has lost the run %+v, and has %+v", was.Name, run, is.Runs)
		}
	}
	revisions := map[string]string{}
	for _, one := range is.Status.Published {
		revisions[one.Target] = one.Revision
	}
	for _, one := range was.Status.Published {
		if now := revisions[one.Target]; now != one.Revision && now != tip {
			return fmt.Sprintf("%s had published %s to %s, and now %s", was.Name, one.Revision, one.Target, revisions[one.Target])
		}
	}
	return ""
}

// takeoverNames are the pipelines: paused is suspended, held on hold, and broken has got a source that cannot be rendered.
var takeoverNames = []string{"web", "api", "paused", "held", "broken"}

func takeoverKeys() (keys []string) {
	for _, name := range takeoverNames {
		keys = append(keys, "team/"+name)
	}
	return keys
}

// takeoverPolicy injects one container, by fields that have been there since the first version.
const takeoverPolicy = `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: mesh}
spec:
  sidecars:
  - name: cache
    select: {default: Inject}
    template: |
      spec:
        containers:
        - name: cache
          image: registry.example.com/cache:1
`

// takeoverPipeline is pipelineYAML with that policy.
func takeoverPipeline(name, url string) string {
	return strings.Replace(pipelineYAML(name, url), "{builtIn: istio}", "{file: mesh.yaml}", 1)
}
