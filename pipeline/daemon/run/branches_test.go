// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// proxyRenderer injects the version of Istio that a file names into two Deployments; "broken" fails.
type proxyRenderer struct{}

const proxyDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: shop}
spec:
  template:
    spec:
      containers:
      - {name: istio-proxy, image: "docker.io/istio/proxyv2:%s"}
`

func (proxyRenderer) Render(_ context.Context, files tree.Reader, request render.Request) (*render.Response, error) {
	content, err := files.Read(request.Path + "/text")
	if err != nil {
		return nil, err
	}
	version := strings.TrimSpace(string(content))
	if version == "broken" {
		return nil, errors.New("no such directory")
	}
	response := &render.Response{}
	for _, name := range []string{"web", "db"} {
		o := render.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
		o.YAML = fmt.Appendf(nil, proxyDeployment, name, version)
		response.Objects = append(response.Objects, o)
		response.Decisions = append(response.Decisions, render.Decision{Object: workloadRef(name), Action: "injected"})
	}
	return response, nil
}

// versions are those that the cluster of a pipeline is to have according to its state.
func (w *works) versions(pipeline string) map[string]int {
	w.t.Helper()
	return status.Versions(w.state(pipeline).Merged())
}

func (w *works) has(when string, want map[string]int) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.versions("shop")); diff != "" {
		w.t.Errorf("%s: %s", when, diff)
	}
}

// TestVersionsAreThoseOfTheBranchAfterARollback: the last render is not what the branch has then.
func TestVersionsAreThoseOfTheBranchAfterARollback(t *testing.T) {
	const wave = "groupBy: Label, label: wave, merge: WhenGreen, waves: {order: [eu, us]}"
	p := newPromoting(t, wave, map[string]string{"shop": "eu"})
	p.runner.Builder.Renderer = proxyRenderer{}
	for _, version := range []string{"1.31.4", "1.32.0"} {
		p.change(version, "shop")
		p.pass(time.Minute)
	}
	p.has("merged", map[string]int{"1.32.0": 2})
	if _, err := p.promoter.Rollback(t.Context(), []string{"shop"}, "", "ann", everybody); err != nil {
		t.Fatal(err)
	}
	p.has("the rollback waits", map[string]int{"1.32.0": 2})
	requests := p.host.Requests()
	last := requests[len(requests)-1]
	p.merge(last.Number)
	p.promoter.FinishRollbacks(t.Context())
	p.has("the rollback is merged", map[string]int{"1.31.4": 2})
	tip := p.tip("rendered")
	state := p.state("shop")
	if got := state.Mesh.OnBranch; got == nil || got.Revisions[state.Status.Published[0].Target] != tip {
		t.Errorf("read was %+v, not %s", got, tip)
	}
	if _, err := p.promoter.Release(t.Context(), []string{"shop"}, "token"); err != nil {
		t.Fatal(err)
	}
	err := p.runner.Do(t.Context(), queue.Job{Pipeline: "shop", Cause: "again", Force: true, Since: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	p.has("the newest result waits again", map[string]int{"1.31.4": 2})
	p.pass(time.Minute)
	p.has("promoted", map[string]int{"1.32.0": 2})
	if p.state("shop").Mesh.OnBranch != nil {
		t.Errorf("the branch has the last render, and the state has %+v", p.state("shop").Mesh.OnBranch)
	}
}

// TestVersionsStayWhenABuildFails: what was published stays on the branch.
func TestVersionsStayWhenABuildFails(t *testing.T) {
	w := newWorks(t, "shop")
	w.runner.Builder.Renderer = proxyRenderer{}
	for _, version := range []string{"1.31.4", "broken", "broken"} {
		w.repository.Commit(version+fmt.Sprint(w.commits()), map[string]string{"shop/text": version, "shop/x": time.Now().String()})
		if err := w.do("shop", version, 1); err != nil {
			t.Fatal(err)
		}
		w.has(version, map[string]int{"1.31.4": 2})
	}
	if outcome := w.state("shop").Seen.Outcome; outcome != status.Failed {
		t.Errorf("the outcome is %s", outcome)
	}
}

// TestVersionsAreThoseThatAPersonHasCommitted has a person edit the branch, also of a pipeline that is on hold.
func TestVersionsAreThoseThatAPersonHasCommitted(t *testing.T) {
	w := newWorks(t, "shop")
	w.runner.Builder.Renderer = proxyRenderer{}
	w.repository.Commit("first", map[string]string{"shop/text": "1.31.4"})
	w.look()
	const file = "shop/shop/deployment-web.yaml"
	was := w.repository.Git("show", "rendered:"+file) + "\n"
	edit := func(version string) {
		t.Helper()
		w.editRendered("Use "+version, map[string]string{file: strings.ReplaceAll(was, "1.31.4", version)})
	}
	edit("1.30.1")
	w.look()
	w.has("edited", map[string]int{"1.31.4": 1, "1.30.1": 1})
	if err := w.promoter().Hold(t.Context(), []string{"shop"}, "ann", ""); err != nil {
		t.Fatal(err)
	}
	edit("1.29.7")
	w.look()
	w.has("edited on hold", map[string]int{"1.31.4": 1, "1.29.7": 1})
	edit("1.31.4")
	w.look()
	w.has("taken back on hold", map[string]int{"1.31.4": 2})
	if state := w.state("shop"); state.Mesh.OnBranch != nil {
		t.Errorf("it differs by %+v", state.Mesh.OnBranch)
	}
}

// TestAMergeIsSeenWhileAPipelineIsOnHold: people can merge what waits of it.
func TestAMergeIsSeenWhileAPipelineIsOnHold(t *testing.T) {
	p := newProposing(t, "", "shop")
	p.runner.Builder.Renderer = proxyRenderer{}
	p.repository.Commit("first", map[string]string{"shop/text": "1.31.4"})
	if err := p.do("shop", "1", 1); err != nil {
		t.Fatal(err)
	}
	p.has("proposed", map[string]int{})
	if err := p.works.promoter().Hold(t.Context(), []string{"shop"}, "ann", ""); err != nil {
		t.Fatal(err)
	}
	p.look()
	p.has("on hold", map[string]int{})
	p.merge(1)
	p.look()
	p.has("merged on hold", map[string]int{"1.31.4": 2})
	if r := p.waits("shop"); r != nil {
		t.Errorf("it still waits in %+v", r)
	}
}

// TestWavesShowHoldsAndRollbacks: a wave that a person has stopped is not done.
func TestWavesShowHoldsAndRollbacks(t *testing.T) {
	const waves = "groupBy: Label, label: wave, merge: WhenGreen, waves: {order: [eu, us]}"
	p := newPromoting(t, waves, map[string]string{"a": "eu", "b": "us"})
	p.runner.Builder.Renderer = proxyRenderer{}
	shown := func(when string, want ...string) {
		t.Helper()
		if err := p.runner.Store.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range p.promoter.Promotions(func(string) bool { return true })[0].Stages {
			got = append(got, fmt.Sprint(s.State, " ", s.Istio, s.Next))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	p.change("1.31.4", "a", "b")
	p.pass(time.Minute)
	p.pass(time.Minute)
	shown("merged", "Done [1.31.4] []", "Done [1.31.4] []")
	if err := p.promoter.Hold(t.Context(), []string{"b"}, "ann", "a freeze"); err != nil {
		t.Fatal(err)
	}
	p.change("1.32.0", "a", "b")
	p.pass(time.Minute)
	p.pass(time.Minute)
	shown("the second is on hold", "Done [1.32.0] []", "Held [1.31.4] [1.32.0]")
	if _, err := p.promoter.Rollback(t.Context(), []string{"a"}, "", "ann", everybody); err != nil {
		t.Fatal(err)
	}
	shown("the first is being taken back", "RollingBack [1.32.0] []", "Held [1.31.4] [1.32.0]")
	requests := p.host.Requests()
	p.host.Merging(requests[len(requests)-1], "")
	p.host.MergedByPerson(requests[len(requests)-1].Number, "")
	p.promoter.FinishRollbacks(t.Context())
	shown("the first is taken back", "RolledBack [1.31.4] []", "Held [1.31.4] []")
	if _, err := p.promoter.Release(t.Context(), []string{"a", "b"}, "token"); err != nil {
		t.Fatal(err)
	}
	p.change("broken", "a")
	p.pass(time.Minute)
	shown("the first fails", "Failed [1.31.4] []", "Done [1.31.4] []")
}
