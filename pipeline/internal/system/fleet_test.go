// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/server"
)

// overlay is a pipeline's directory: a kustomization over a base.
func overlay(base string) string {
	return "resources: [../../" + base + "]\nnamespace: shop\n"
}

// runsOf returns the id of the last run of every pipeline.
func (f *fixture) runsOf() map[string]string {
	out := map[string]string{}
	for _, p := range f.pipelines() {
		if p.Status.LastRun != nil {
			out[p.Name] = p.Status.LastRun.ID
		}
	}
	return out
}

func (f *fixture) allReady(n int) {
	f.t.Helper()
	f.eventually("waiting for all pipelines", func() string {
		ready := 0
		for _, p := range f.pipelines() {
			if p.State == server.StateReady {
				ready++
			}
		}
		if ready != n {
			return fmt.Sprintf("%d of %d are ready", ready, n)
		}
		return ""
	})
}

// TestOnlyWhatIsAffectedRuns has many pipelines in one repository: PRERIG_E2E=full has a thousand.
func TestOnlyWhatIsAffectedRuns(t *testing.T) {
	n := 24
	if os.Getenv("PRERIG_E2E") == "full" {
		n = 1000
	}
	f := prepare(t, nil)
	f.c.Debounce = time.Millisecond
	files := map[string]string{"bases/even/web.yaml": deployment("web", "web:1"), "bases/odd/web.yaml": deployment("web", "web:1"),
		"bases/even/kustomization.yaml": "resources: [web.yaml]\n", "bases/odd/kustomization.yaml": "resources: [web.yaml]\n"}
	for i := range n {
		name := fmt.Sprintf("app%d", i)
		f.write(filepath.Join(f.c.Pipelines, name+".yaml"), pipelineYAML(name, f.repository.URL))
		files["apps/"+name+"/kustomization.yaml"] = overlay([]string{"bases/even", "bases/odd"}[i%2])
	}
	f.repository.Commit("first", files)
	f.start()
	begin := time.Now()
	f.allReady(n)
	t.Logf("%d pipelines rendered and published in %s, %d commits", n, time.Since(begin).Round(time.Millisecond), f.commits())
	// On a machine that does something else meanwhile, a commit does not wait for renders that take seconds.
	if f.commits() > n/2 {
		t.Errorf("%d pipelines with one cause made %d commits", n, f.commits())
	}
	changes := func(subject string, files map[string]string, want int) {
		t.Helper()
		before, commits := f.runsOf(), f.commits()
		commit := f.repository.Commit(subject, files)
		begin := time.Now()
		f.push(commit)
		count := func() (changed []string) {
			for name, id := range f.runsOf() {
				if before[name] != id {
					changed = append(changed, name)
				}
			}
			return changed
		}
		f.eventually(subject, func() string {
			if got := len(count()); got < want {
				return fmt.Sprintf("%d of %d ran", got, want)
			}
			return ""
		})
		took := time.Since(begin)
		time.Sleep(300 * time.Millisecond) // for those that must not run
		if got := count(); len(got) != want {
			t.Errorf("%s: %d pipelines ran, want %d: %v", subject, len(got), want, got)
		}
		t.Logf("%s: %d pipelines ran, %s after the event, %d commits", subject, want, took.Round(time.Millisecond), f.commits()-commits)
	}
	changes("one overlay changes", map[string]string{"apps/app3/kustomization.yaml": overlay("bases/odd") + "namePrefix: new-\n"}, 1)
	changes("a base changes", map[string]string{"bases/even/web.yaml": deployment("web", "web:2")}, n/2)
	changes("nothing that is read changes", map[string]string{"README.md": "new"}, 0)
	// kustomize looks for kustomization.yaml first and fails when there are two: it had looked for the other name.
	before := f.commits()
	changes("a file appears that was looked for", map[string]string{"apps/app5/kustomization.yml": overlay("bases/odd")}, 1)
	if f.commits() != before {
		t.Error("a build that fails made a commit")
	}
	if p := f.pipelines("team/app5")[0]; p.State != server.StateStalled {
		t.Errorf("app5 is %s: %s", p.State, p.Message)
	}
}

// TestOneBrokenPipelineStopsNoOther has pipelines that fail in different ways beside one that works.
func TestOneBrokenPipelineStopsNoOther(t *testing.T) {
	f := prepare(t, nil)
	f.repository.Commit("first", map[string]string{
		"apps/good/app.yaml":              deployment("good", "image:1"),
		"apps/remote/kustomization.yaml":  "resources:\n- https://example.com/base?ref=main\n",
		"apps/garbage/app.yaml":           "a: [\n",
		"apps/outside/kustomization.yaml": "resources: [../../../etc]\n",
		"apps/empty/README.md":            "nothing",
		"apps/helm/kustomization.yaml":    "helmCharts: [{name: x}]\n",
		"apps/bomb/app.yaml":              bomb(),
		"apps/secretless/app.yaml":        deployment("secretless", "image:1"),
		"apps/unmanaged/app.yaml":         deployment("unmanaged", "image:1"),
	})
	f.repository.InWork("push", "-q", "origin", "HEAD:refs/heads/mine")
	names := []string{"good", "remote", "garbage", "outside", "empty", "helm", "bomb", "secretless", "unmanaged"}
	for _, name := range names {
		text := pipelineYAML(name, f.repository.URL)
		switch name {
		case "secretless":
			text = strings.Replace(text, "ref: {branch: main}", "ref: {branch: main}, secretRef: {name: none}", 1)
		case "unmanaged":
			text = strings.Replace(text, "branch: rendered", "branch: mine", 1)
		}
		f.write(filepath.Join(f.c.Pipelines, name+".yaml"), text)
	}
	f.write(filepath.Join(f.c.Pipelines, "typo.yaml"), strings.Replace(pipelineYAML("typo", f.repository.URL), "build:", "biuld:", 1))
	f.start()
	f.shows("good/shop/deployment-good.yaml", "image:1")
	want := map[string][]string{
		"team/good": {server.StateReady, "1 object"}, "team/remote": {server.StateStalled, "is remote"}, "team/garbage": {server.StateStalled, "app.yaml"},
		"team/outside": {server.StateStalled, ""}, "team/empty": {server.StateStalled, "allowEmpty"}, "team/helm": {server.StateStalled, "kubeVersion must be given"},
		"team/bomb": {server.StateStalled, ""}, "team/secretless": {server.StateFailing, "secret none"},
		"team/unmanaged": {server.StateStalled, "not written by Prerig"}, "team/typo": {server.StateInvalid, "biuld"},
	}
	f.eventually("waiting for the states", func() string {
		found := f.pipelines()
		for _, p := range found {
			if w := want[p.Name]; p.State != w[0] || !strings.Contains(p.Message, w[1]) {
				return fmt.Sprintf("%s is %s: %s", p.Name, p.State, p.Message)
			}
		}
		if len(found) != len(want) {
			return fmt.Sprintf("%d pipelines", len(found))
		}
		return ""
	})
	// What is mended runs again, and the others have changed nothing.
	f.push(f.repository.Commit("mended", map[string]string{"apps/garbage/app.yaml": deployment("garbage", "image:2")}))
	f.shows("garbage/shop/deployment-garbage.yaml", "image:2")
	if got := strings.Fields(f.repository.Git("ls-tree", "--name-only", "rendered")); !slices.Equal(got, []string{".prerig", "garbage", "good"}) {
		t.Errorf("the branch holds %v", got)
	}
}

// bomb is a document whose aliases stand for a great many values.
func bomb() string {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 12 {
		one := strconv.Itoa(i)
		text += "a" + strconv.Itoa(i+1) + ": &a" + strconv.Itoa(i+1) + " [" + strings.TrimSuffix(strings.Repeat("*a"+one+", ", 10), ", ") + "]\n"
	}
	return text
}

// TestWhatOthersChangeIsPutBack has somebody edit a rendered file; the next interval finds it.
func TestWhatOthersChangeIsPutBack(t *testing.T) {
	f := prepare(t, map[string]string{"web.yaml": pipelineYAML("web", "URL", "  interval: 2s\n  drift: Repair\n")})
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1")})
	f.start()
	const file = "web/shop/deployment-web.yaml"
	f.shows(file, "image: web:1")
	f.repository.InWork("fetch", "-q", "origin", "rendered")
	f.repository.InWork("checkout", "-q", "-b", "rendered", "FETCH_HEAD")
	f.repository.Commit("by hand", map[string]string{file: "kind: edited\n"})
	f.shows(file, "image: web:1")
	if got := f.commits(); got != 3 {
		t.Errorf("%d commits, want three", got)
	}
	// So is a branch that somebody has deleted.
	f.repository.Git("update-ref", "-d", "refs/heads/rendered")
	f.shows(file, "image: web:1")
}

// TestAPipelineDoesNotRenderWhatItPublishes has the source name no branch, so that it is only known at the run that the
// pipeline publishes to the same, as adopt would allow.
func TestAPipelineDoesNotRenderWhatItPublishes(t *testing.T) {
	text := strings.Replace(pipelineYAML("web", "URL", "  interval: 1s\n"), ", ref: {branch: main}", "", 1)
	text = strings.Replace(text, "branch: rendered", "branch: main, path: apps/web/out, adopt: true", 1)
	f := prepare(t, map[string]string{"web.yaml": text})
	first := f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1")})
	f.start()
	f.becomes("team/web", server.StateStalled)
	if got := f.pipelines("team/web")[0].Runs[0].Message; !strings.Contains(got, "it is the branch that the source is read from") {
		t.Errorf("it says %q", got)
	}
	time.Sleep(2 * time.Second) // two intervals more
	if got := f.repository.Git("rev-parse", "main"); got != first {
		t.Errorf("main has the commit %s on it", got)
	}
}
