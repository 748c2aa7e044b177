// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/pulltest"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// proposing is works whose pipelines publish by pull request.
type proposing struct {
	*works
	host *pulltest.Host
}

func newProposing(t *testing.T, pullRequest string, pipelines ...string) *proposing {
	t.Helper()
	p := &proposing{works: &works{t: t, renderer: &renderer{}, git: gittest.New(t)}, host: &pulltest.Host{}}
	p.repository = p.git.Repository(t, "apps")
	p.host.Heads = p.tip
	texts := map[string]string{}
	for _, name := range pipelines {
		texts[name] = fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s}\nspec:\n  source: {git: {url: %s, ref: {branch: main}}}\n"+
			"  build: {path: %[1]s}\n  publish: [{git: {branch: rendered, pullRequest: {provider: Gitea, secretRef: {name: bot}%[3]s}}}]\n", name, p.repository.URL, pullRequest)
	}
	p.run(texts)
	p.runner.Targets.Hosts = func(context.Context, string, *v1alpha1.GitPublish) (pullrequest.Host, error) { return p.host, nil }
	return p
}

func (p *proposing) tip(branch string) string {
	return p.repository.Git("for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

// merge is a person's.
func (p *proposing) merge(number int64) {
	r := p.host.Requests()[number-1]
	p.repository.Git("update-ref", "refs/heads/"+r.Base, r.Head)
	p.host.MergedByPerson(number, "")
}

// waits is what the state of a pipeline says that it waits in.
func (p *proposing) waits(pipeline string) *v1alpha1.PullRequestStatus {
	p.t.Helper()
	state := p.state(pipeline)
	if len(state.Status.Published) != 1 {
		p.t.Fatalf("got %+v", state.Status.Published)
	}
	return state.Status.Published[0].PullRequest
}

func TestAPipelineThatPublishesByPullRequest(t *testing.T) {
	p := newProposing(t, "", "shop")
	p.repository.Commit("first", map[string]string{"shop/text": "one"})
	if err := p.do("shop", "1", 1); err != nil {
		t.Fatal(err)
	}
	r := p.waits("shop")
	if r == nil || r.State != v1alpha1.PullRequestOpen || r.Number != 1 || r.Head != "prerig/rendered/pipeline/shop" || r.Since.IsZero() || !strings.HasSuffix(r.URL, "/1") {
		t.Fatalf("got %+v", r)
	}
	if c := p.state("shop").Condition(); c.Status != "True" {
		t.Errorf("got %+v", c)
	}
	if p.look(); p.waits("shop") == nil || p.renderer.renders.Load() != 1 {
		t.Errorf("%d renders", p.renderer.renders.Load())
	}
	p.merge(1)
	if p.look(); p.waits("shop") != nil || p.tip(r.Head) != "" || p.renderer.renders.Load() != 1 {
		t.Errorf("after the merge it waits in %+v, the head is at %s", p.waits("shop"), p.tip(r.Head))
	}
	if state := p.look(); state.IsDrifted() {
		t.Errorf("got %s", state.Condition().Message)
	}
	p.editRendered("By hand", map[string]string{renderedFile: "kind: Edited\n"})
	if state := p.look(); !state.IsDrifted() {
		t.Errorf("got %+v", state.Condition())
	}
	p.repository.InWork("checkout", "-q", "main")
	p.repository.Commit("second", map[string]string{"shop/text": "two"})
	if err := p.do("shop", "2", 1); err != nil || p.waits("shop").Number != 2 {
		t.Fatalf("%v, %+v", err, p.waits("shop"))
	}
	p.host.ClosedByPerson(2)
	if p.look(); p.waits("shop").State != v1alpha1.PullRequestClosed {
		t.Errorf("got %+v", p.waits("shop"))
	}
	p.repository.Git("update-ref", "-d", "refs/heads/"+r.Head)
	if state := p.look(); p.waits("shop").State != v1alpha1.PullRequestClosed || state.IsDrifted() {
		t.Errorf("with its branch deleted: %+v", p.waits("shop"))
	}
	if err := p.runner.Do(t.Context(), queue.Job{Pipeline: "shop", Cause: "3", Force: true}); err != nil || len(p.host.Requests()) != 2 {
		t.Errorf("what was declined is proposed again: %v", err)
	}
	p.repository.Commit("third", map[string]string{"shop/text": "three"})
	if err := p.do("shop", "4", 1); err != nil || p.waits("shop").Number != 3 {
		t.Errorf("%v, %+v", err, p.waits("shop"))
	}
	p.repository.Commit("broken", map[string]string{"shop/text": "empty"})
	written := p.host.Written()
	if err := p.do("shop", "5", 1); err != nil || p.host.Written() != written || p.waits("shop").Number != 3 || p.state("shop").Runs[0].Outcome != status.Refused {
		t.Errorf("a refused result: %v, %+v", err, p.state("shop").Runs[0])
	}
}

func TestAHostThatDoesNotAnswer(t *testing.T) {
	p := newProposing(t, "", "shop")
	p.repository.Commit("first", map[string]string{"shop/text": "one"})
	var down bool
	p.host.Before = func(string) error {
		if down {
			return pulltest.Failure(http.StatusBadGateway, "no")
		}
		return nil
	}
	var retry *queue.RetryError
	down = true
	if err := p.do("shop", "1", 1); !errors.As(err, &retry) {
		t.Fatalf("got %v", err)
	}
	down = false
	if err := p.do("shop", "1", 1); err != nil || p.waits("shop").Number != 1 {
		t.Fatalf("got %v", err)
	}
	down = true
	if err := p.runner.Do(t.Context(), queue.Job{Pipeline: "shop", Cause: "look", Drift: true}); !errors.As(err, &retry) || p.state("shop").Condition().Status != "False" {
		t.Errorf("got %v, %+v", err, p.state("shop").Condition())
	}
	down = false
	if state := p.look(); state.Condition().Status != "True" || p.waits("shop").State != v1alpha1.PullRequestOpen {
		t.Errorf("got %+v", state.Condition())
	}
}

// TestARunWaitsForTheTimeThatAHostNames has the host name one that is later than any other wait.
func TestARunWaitsForTheTimeThatAHostNames(t *testing.T) {
	p := newProposing(t, "", "shop")
	p.repository.Commit("first", map[string]string{"shop/text": "one"})
	p.host.Before = func(string) error {
		return &pullrequest.Error{Status: http.StatusTooManyRequests, Temporary: true, Wait: time.Hour}
	}
	var retry *queue.RetryError
	if err := p.do("shop", "1", 1); !errors.As(err, &retry) || retry.After < time.Hour {
		t.Errorf("got %v, tried again after %v", err, retry)
	}
}

func TestResultsOfOneCauseShareAPullRequest(t *testing.T) {
	for groupBy, want := range map[string]string{"All": "prerig/rendered/all", "SourceCommit": "prerig/rendered/commit/"} {
		t.Run(groupBy, func(t *testing.T) {
			p := newProposing(t, ", groupBy: "+groupBy, "a", "b", "c")
			all := func(cause string, names ...string) {
				var group sync.WaitGroup
				for _, name := range names {
					group.Go(func() {
						if err := p.do(name, cause, len(names)); err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
			}
			p.repository.Commit("first", map[string]string{"a/text": "1", "b/text": "1", "c/text": "1"})
			all("1", "a", "b", "c")
			requests := p.host.Requests()
			if len(requests) != 1 || !strings.HasPrefix(requests[0].Head, want) || !strings.HasPrefix(requests[0].Title, "Render 3 pipelines") {
				t.Fatalf("got %+v", requests)
			}
			p.repository.Commit("second", map[string]string{"a/text": "2", "b/text": "2"})
			all("2", "a", "b")
			requests = p.host.Requests()
			if groupBy == "All" {
				if len(requests) != 1 {
					t.Errorf("got %+v", requests)
				}
				return
			}
			// The first one keeps what no later commit has changed.
			first, second := requests[0], requests[1]
			if len(requests) != 2 || first.State != pullrequest.StateOpen || second.State != pullrequest.StateOpen {
				t.Fatalf("got %+v", requests)
			}
			if got := p.repository.Git("diff", "--name-only", "rendered", first.Head, "--", "a", "b", "c"); got != "c/configmap-x.yaml" {
				t.Errorf("the first holds %s", got)
			}
			if got := p.repository.Git("diff", "--name-only", "rendered", second.Head, "--", "a", "b", "c"); got != "a/configmap-x.yaml\nb/configmap-x.yaml" {
				t.Errorf("the second holds %s", got)
			}
			p.repository.Commit("third", map[string]string{"c/text": "3"})
			all("3", "c")
			if requests = p.host.Requests(); requests[0].State != pullrequest.StateClosed || p.tip(first.Head) != "" || requests[2].State != pullrequest.StateOpen {
				t.Errorf("got %+v", requests)
			}
		})
	}
}

// TestAPipelineThatMovesLeavesItsOldPullRequest moves a pipeline to another path and with it to another pull request, before the first one
// is merged.
func TestAPipelineThatMovesLeavesItsOldPullRequest(t *testing.T) {
	p := newProposing(t, ", groupBy: Directory", "a", "shop")
	for _, name := range []string{"a", "shop"} {
		p.edit(name, "branch: rendered,", "branch: rendered, path: eu/"+name+",")
	}
	p.repository.Commit("first", map[string]string{"a/text": "1", "shop/text": "1"})
	for _, name := range []string{"a", "shop"} {
		if err := p.do(name, "1", 1); err != nil {
			t.Fatal(err)
		}
	}
	eu := p.host.Requests()[0].Head
	held := func() string { return p.repository.Git("diff", "--name-status", "rendered", eu, "--", "eu", "us") }
	if got := held(); got != "A\teu/a/configmap-x.yaml\nA\teu/shop/configmap-x.yaml" {
		t.Fatalf("got %s", got)
	}
	p.edit("shop", "path: eu/shop", "path: us/shop")
	if err := p.do("shop", "2", 1); err != nil || p.waits("shop").Number != 2 {
		t.Fatalf("%v, %+v", err, p.waits("shop"))
	}
	if got := held(); got != "A\teu/a/configmap-x.yaml" {
		t.Errorf("after the move the old pull request holds %s", got)
	}
	p.merge(2)
	p.repository.InWork("checkout", "-q", "main")
	p.repository.Commit("second", map[string]string{"a/text": "2"})
	if err := p.do("a", "3", 1); err != nil {
		t.Fatal(err)
	}
	if got := held(); got != "A\teu/a/configmap-x.yaml" {
		t.Errorf("made again, the old pull request holds %s", got)
	}
}
