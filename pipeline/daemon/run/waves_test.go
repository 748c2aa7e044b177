// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/pulltest"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// promoting is proposing with a promoter, whose clock the test moves. What it asks to be looked at runs at once.
type promoting struct {
	*proposing
	promoter *promotion.Promoter
	clock    time.Time
}

// newPromoting makes pipelines by their names, each with the label wave.
func newPromoting(t *testing.T, pullRequest string, waves map[string]string) *promoting {
	t.Helper()
	p := &promoting{proposing: &proposing{works: &works{t: t, renderer: &renderer{}, git: gittest.New(t)}, host: &pulltest.Host{}}, clock: time.Now()}
	p.repository = p.git.Repository(t, "apps")
	p.host.Heads = p.tip
	p.host.Merging = func(r pullrequest.Request, _ pullrequest.MergeMethod) (string, error) {
		tree := p.repository.Git("merge-tree", "--write-tree", r.Base, r.Head)
		commit := p.repository.Git("-c", "user.name=Host", "-c", "user.email=host@example.com", "commit-tree", "-m", "Merge "+r.Head, "-p", r.Base, "-p", r.Head, tree)
		p.repository.Git("update-ref", "refs/heads/"+r.Base, commit)
		return commit, nil
	}
	texts := map[string]string{}
	for name, wave := range waves {
		texts[name] = fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s, labels: {wave: %s}}\nspec:\n  source: {git: {url: %s, ref: {branch: main}}}\n"+
			"  build: {path: %[1]s}\n  publish: [{git: {branch: rendered, pullRequest: {provider: Gitea, secretRef: {name: bot}, %[4]s}}}]\n", name, wave, p.repository.URL, pullRequest)
	}
	p.run(texts)
	p.runner.Targets.Hosts = func(context.Context, string, *v1alpha1.GitPublish) (pullrequest.Host, error) { return p.host, nil }
	p.runner.Targets.Turn = promotion.TurnsOf(p.runner.Store)
	p.restart()
	return p
}

// restart is a new process.
func (p *promoting) restart() {
	r := p.runner
	p.promoter = &promotion.Promoter{Catalog: r.Catalog, Store: r.Store, Queue: r.Queue, Targets: r.Targets, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return p.clock }}
	p.promoter.Consider = func(ctx context.Context, pipelines []string, _ string) error {
		for _, name := range pipelines {
			if err := r.Do(ctx, queue.Job{Pipeline: name, Cause: "settle" + name, Since: time.Now(), Drift: true}); err != nil {
				return err
			}
		}
		return nil
	}
}

// pass lets time go by, with looks in between.
func (p *promoting) pass(d time.Duration) {
	p.t.Helper()
	for range 6 {
		p.clock = p.clock.Add(d / 6)
		p.restart() // of one that remembers nothing
		p.promoter.Look(p.t.Context())
	}
}

// stages are the states of the waves in their order, with their messages.
func (p *promoting) stages() (states, messages []string) {
	p.t.Helper()
	if err := p.runner.Store.Sync(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	all := p.promoter.Promotions(func(string) bool { return true })
	if len(all) != 1 {
		p.t.Fatalf("got %+v", all)
	}
	for _, s := range all[0].Stages {
		states, messages = append(states, s.State), append(messages, s.Message)
	}
	return states, messages
}

func (p *promoting) is(when string, want ...string) {
	p.t.Helper()
	states, messages := p.stages()
	if !slices.Equal(states, want) {
		p.t.Fatalf("%s: the waves are %v (%q), want %v; pull requests: %s", when, states, messages, want, p.heads())
	}
}

// heads are the pull requests, oldest first.
func (p *promoting) heads() string {
	var out []string
	for _, r := range p.host.Requests() {
		out = append(out, fmt.Sprintf("%s %s", r.Head[strings.LastIndexByte(r.Head, '/')+1:], r.State))
	}
	return strings.Join(out, ", ")
}

// commit changes all pipelines, and renders them.
func (p *promoting) change(text string, pipelines ...string) {
	p.t.Helper()
	files := map[string]string{}
	for _, name := range pipelines {
		files[name+"/text"] = text
	}
	p.repository.Commit(text, files)
	p.doAll(text, pipelines...)
}

const threeWaves = "groupBy: Label, label: wave, merge: WhenGreen, waves: {order: [canary, eu, us], statuses: [deployed], greenFor: 10m}"

func (p *promoting) deployed(n int, state pullrequest.CheckState) {
	p.t.Helper()
	p.host.Say(p.host.Requests()[n-1].MergeCommit, "deployed", state)
}

// TestWavesGoOneAfterTheOther drives a change through three waves, of which the second is red at first.
func TestWavesGoOneAfterTheOther(t *testing.T) {
	p := newPromoting(t, threeWaves, map[string]string{"a": "canary", "b": "eu", "c": "us", "d": "us"})
	p.change("one", "a", "b", "c", "d")
	if got := p.heads(); got != "" {
		t.Fatalf("before anybody has decided there are %s", got)
	}
	p.pass(time.Minute)
	p.is("at first", promotion.StageVerifying, promotion.StageWaiting, promotion.StageWaiting)
	if got := p.heads(); got != "canary Merged" {
		t.Fatalf("got %s", got)
	}
	p.deployed(1, pullrequest.CheckGreen)
	p.pass(time.Minute)
	p.is("not green for long enough", promotion.StageVerifying, promotion.StageWaiting, promotion.StageWaiting)
	p.pass(14 * time.Minute)
	p.pass(6 * time.Second)
	p.is("after the canary", promotion.StageDone, promotion.StageVerifying, promotion.StageWaiting)
	p.deployed(2, pullrequest.CheckRed)
	p.pass(time.Hour)
	p.is("red", promotion.StageDone, promotion.StageStopped, promotion.StageWaiting)
	if got := p.heads(); got != "canary Merged, eu Merged" {
		t.Fatalf("got %s", got)
	}
	p.deployed(2, pullrequest.CheckGreen)
	p.pass(time.Minute)
	p.is("green again", promotion.StageDone, promotion.StageVerifying, promotion.StageWaiting)
	// What is newer has to wait for the next train, also where only the last wave is of it.
	p.change("two", "a", "c")
	p.pass(14 * time.Minute)
	p.pass(6 * time.Second)
	p.is("the last one", promotion.StageDone, promotion.StageDone, promotion.StageVerifying)
	if got := p.repository.Git("show", "rendered:c/configmap-x.yaml"); !strings.Contains(got, "one") {
		t.Errorf("the last wave has %s", got)
	}
	p.deployed(3, pullrequest.CheckGreen)
	p.pass(14 * time.Minute)
	p.pass(6 * time.Second)
	if got := p.heads(); !strings.HasPrefix(got, "canary Merged, eu Merged, us Merged, canary Merged") {
		t.Fatalf("the next train: %s", got)
	}
	if got := p.repository.Git("show", "rendered:c/configmap-x.yaml") + p.repository.Git("show", "rendered:a/configmap-x.yaml"); !strings.Contains(got, "one") || !strings.Contains(got, "two") {
		t.Errorf("the second train has %s", got)
	}
}

// TestAHoldStopsLaterWaves holds a merged wave whose statuses are green: what a person distrusts goes no further until it is released.
func TestAHoldStopsLaterWaves(t *testing.T) {
	p := newPromoting(t, threeWaves, map[string]string{"a": "canary", "b": "eu", "c": "us"})
	p.change("one", "a", "b", "c")
	p.pass(time.Minute)
	p.deployed(1, pullrequest.CheckGreen)
	if err := p.promoter.Hold(t.Context(), []string{"a"}, "ann", "errors in the canary"); err != nil {
		t.Fatal(err)
	}
	p.pass(time.Hour)
	p.is("on hold", promotion.StageHeld, promotion.StageWaiting, promotion.StageWaiting)
	if got := p.heads(); got != "canary Merged" {
		t.Fatalf("got %s", got)
	}
	if _, err := p.promoter.Release(t.Context(), []string{"a"}, "token"); err != nil {
		t.Fatal(err)
	}
	p.doAll("released", "a")
	p.pass(14 * time.Minute)
	p.pass(6 * time.Second)
	p.is("released", promotion.StageDone, promotion.StageVerifying, promotion.StageWaiting)
}

// TestAMergeIsReadAfterACrash dies between storing that a pull request was merged and asking its pipelines to look.
func TestAMergeIsReadAfterACrash(t *testing.T) {
	p := newPromoting(t, threeWaves, map[string]string{"a": "canary", "b": "eu", "c": "us"})
	p.change("one", "a", "b", "c")
	for range 6 {
		p.clock = p.clock.Add(10 * time.Second)
		p.restart()
		consider := p.promoter.Consider
		p.promoter.Consider = func(ctx context.Context, pipelines []string, reason string) error {
			if strings.Contains(reason, "merged") {
				return errors.New("killed")
			}
			return consider(ctx, pipelines, reason)
		}
		p.promoter.Look(t.Context())
	}
	if pr := p.state("a").Status.Published[0].PullRequest; p.heads() != "canary Merged" || pr == nil {
		t.Fatalf("got %s, %+v", p.heads(), pr)
	}
	p.pass(time.Minute)
	if pr := p.state("a").Status.Published[0].PullRequest; pr != nil {
		t.Errorf("it still waits: %+v", pr)
	}
}

// TestAMergeIsDecidedOnceMoreUnderTheLock puts a pipeline on hold after it was looked at what waits.
func TestAMergeIsDecidedOnceMoreUnderTheLock(t *testing.T) {
	p := newPromoting(t, threeWaves, map[string]string{"a": "canary", "b": "eu", "c": "us"})
	p.change("one", "a", "b", "c")
	var held sync.Once
	p.host.After = func(call string) error {
		if call == pulltest.Opinions {
			held.Do(func() {
				if err := p.promoter.Hold(t.Context(), []string{"a"}, "ann", "wait"); err != nil {
					t.Error(err)
				}
			})
		}
		return nil
	}
	p.pass(time.Minute)
	if got := p.heads(); got != "canary Open" || p.control("a").OnHold == nil {
		t.Errorf("got %s, %+v", got, p.control("a"))
	}
}

// TestPromoteGoesOnWithoutAWaveWhoseBranchIsGone has a person close the first wave and delete its branch, so that nobody knows a commit of
// it any more.
func TestPromoteGoesOnWithoutAWaveWhoseBranchIsGone(t *testing.T) {
	p := newPromoting(t, "groupBy: Label, label: wave, waves: {order: [canary, eu], greenFor: 1m}", map[string]string{"a": "canary", "b": "eu"})
	p.change("one", "a", "b")
	p.pass(time.Minute)
	if got := p.heads(); got != "canary Open" {
		t.Fatalf("got %s", got)
	}
	p.host.ClosedByPerson(1)
	p.repository.Git("update-ref", "-d", "refs/heads/"+p.host.Requests()[0].Head)
	look := func() {
		t.Helper()
		if err := p.promoter.Consider(t.Context(), []string{"a", "b"}, ""); err != nil {
			t.Fatal(err)
		}
		p.pass(time.Minute)
	}
	look()
	p.is("closed", promotion.StageStopped, promotion.StageWaiting)
	if r := p.state("a").Status.Published[0].PullRequest; r == nil || r.State != v1alpha1.PullRequestClosed || r.HeadCommit != "" {
		t.Fatalf("got %+v", r)
	}
	done, err := p.promoter.Promote(t.Context(), []string{"a"}, "ann", "token", everybody)
	if err != nil || len(done.Groups) != 1 {
		t.Fatalf("got %+v, %v", done, err)
	}
	look()
	if got := p.heads(); got != "canary Closed, eu Open" {
		states, messages := p.stages()
		t.Errorf("got %s; %v %q", got, states, messages)
	}
}
