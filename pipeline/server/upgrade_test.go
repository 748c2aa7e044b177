// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/pipeline/verify"
)

const upgradePipeline = `---
apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: %[1]s-%[2]s, namespace: shop, labels: {cluster: %[2]s}}
spec:
  source: {git: {url: "https://git.example.com/shop/config.git"}}
  build: {path: apps/%[1]s/overlays/%[2]s}
  policies: [{file: mesh.yaml}]
  publish:
  - git: {url: %[3]q, branch: rendered, path: %[2]s/%[1]s, pullRequest: {provider: Gitea, groupBy: Label, label: cluster, secretRef: {name: bot},
      merge: WhenGreen, mergeWhen: {statuses: [argocd/health]}, waves: {order: [eu, us, ap], greenFor: 10m, statuses: [argocd/health]}}}
`

// upgradeServer has twelve pipelines in three clusters, in the middle of an upgrade in waves: eu is merged and
// verified, us and ap wait. One has drifted, one is refused by a gate, and one fails.
func upgradeServer(t *testing.T) *Server {
	t.Helper()
	repository := gittest.New(t).Repository(t, "rendered")
	var text strings.Builder
	apps := []string{"cart", "checkout", "ledger", "web"}
	for _, cluster := range []string{"eu", "us", "ap"} {
		for _, app := range apps {
			fmt.Fprintf(&text, upgradePipeline, app, cluster, repository.URL)
		}
	}
	s := with(t, map[string]string{"all.yaml": text.String()})
	lock := func(context.Context, string) (func(), error) { return func() {}, nil }
	targets := publish.NewTargets(
		mirrors{git.NewStore(t.TempDir(), git.DefaultLimits())},
		nil,
		lock,
		tree.Limits{},
		nil,
	)
	targets.Hosts = publish.NewHosts(botSecret{}, nil)
	s.Promoter = &promotion.Promoter{
		Catalog: s.Catalog,
		Store:   s.Store,
		Queue:   s.Queue,
		Targets: targets,
		Log:     slog.New(slog.DiscardHandler),
	}
	for _, e := range s.Catalog.All() {
		if e.Err != nil {
			t.Fatal(e.Err)
		}
		saveUpgraded(t, s, e.Pipeline, targets)
	}
	changed := strings.Replace(injectedDeployment(t, "cart"), "spec:\n", "spec:\n  replicas: 30\n", 1)
	repository.InWork("fetch", "-q", repository.URL, "rendered")
	repository.InWork("checkout", "-q", "-B", "rendered", "FETCH_HEAD")
	repository.Commit("Scale up by hand", map[string]string{"eu/cart/cart.yaml": changed})
	saveWaves(t, s, repository.URL)
	s.Clusters = func() []VerifiedCluster {
		pods := []verify.Pod{
			{
				Namespace: "shop",
				Name:      "web-1",
				Workload:  "Deployment shop/web",
				State:     verify.Changed,
				File:      "eu/web/web.yaml",
			},
		}
		report := &verify.Report{Pods: pods, Counts: map[verify.State]int{verify.Changed: 1, verify.Foreign: 2}}
		return []VerifiedCluster{{Name: "eu", URL: repository.URL, Branch: "rendered", Report: report}}
	}
	return s
}

// botSecret is the secret of the host of pull requests.
type botSecret struct{}

func (botSecret) Secret(context.Context, string, string, secret.Purpose) (map[string][]byte, error) {
	return map[string][]byte{"token": []byte("t")}, nil
}

// saveUpgraded publishes the Deployment of a pipeline, and saves a state in the middle of the upgrade.
func saveUpgraded(t *testing.T, s *Server, p *v1alpha1.RenderPipeline, targets *publish.Targets) {
	t.Helper()
	app, cluster, _ := strings.Cut(p.Metadata.Name, "-")
	now := time.Now()
	to := p.Spec.Publish[0]
	direct := to
	plain := *to.Git
	plain.PullRequest = nil
	direct.Git = &plain
	target, err := targets.Open(t.Context(), "shop", direct)
	if err != nil {
		t.Fatal(err)
	}
	content := strings.ReplaceAll(injectedDeployment(t, app), "proxyv2:1.31.1", "proxyv2:1.32.0")
	receipt, err := target.Publish(
		t.Context(),
		publish.Change{Pipeline: p.Key(), Tool: "test", Files: map[string][]byte{app + ".yaml": []byte(content)}},
	)
	if err != nil {
		t.Fatal(err)
	}
	state := &status.State{Mesh: &status.Mesh{Decided: []status.Decided{
		{
			Action:    "injected",
			Code:      "webhook",
			Reason:    "namespace label istio-injection=enabled",
			Version:   "1.32.0",
			Workloads: []string{"Deployment shop/" + app, "StatefulSet shop/" + app + "-db"},
		},
		{
			Action:    "skipped",
			Code:      "host-network",
			Reason:    "the pod is on the host's network",
			Workloads: []string{"DaemonSet shop/" + app + "-node"},
		},
		{
			Action:    "skipped",
			Code:      "pod-refuses",
			Reason:    "pod label sidecar.istio.io/inject=false",
			Workloads: []string{"Job shop/" + app + "-migrate"},
		},
	}}}
	published := v1alpha1.Published{
		Target:         to.Target(),
		Revision:       receipt.Revision,
		SourceRevision: "main@sha1:" + strings.Repeat("c0ffee", 6) + "c0ff",
		Istio:          "1.32",
	}
	if cluster != "eu" {
		old := status.Proxies{Version: "1.31.4", Workloads: state.Mesh.Decided[0].Workloads}
		state.Mesh.OnBranch = &status.OnBranch{Proxies: []status.Proxies{old}}
		published.IstioBefore = "1.31"
		published.PullRequest = &v1alpha1.PullRequestStatus{
			Number: 41, URL: "https://git.example.com/shop/rendered/pulls/41", State: v1alpha1.PullRequestOpen,
			Head: to.Git.PullRequest.HeadOf(to.Git, cluster), Since: metav1.NewTime(now.Add(-25 * time.Minute)),
		}
	}
	addRuns(state, published, now, len(app))
	state.Status.Published, state.Seen.Targets = []v1alpha1.Published{
		published,
	}, map[string]tree.Record{
		to.Target(): receipt.Record,
	}
	switch p.Metadata.Name {
	case "cart-eu":
		state.Ready(
			now,
			false,
			v1alpha1.ReasonDrifted,
			"on the branch rendered, eu/cart/cart.yaml was changed; its newest commit is ac9b2e7 by Pat <pat@example.com>: Scale up by hand",
			true,
		)
	case "ledger-ap":
		state.Mesh.Findings = []status.WorkloadFinding{
			{Workload: "Deployment shop/ledger", Codes: []string{"PR201", "schema-required"}, Rejected: true},
		}
		state.Add(
			status.Run{
				Run: v1alpha1.Run{
					ID:       "refused",
					Outcome:  status.Refused,
					Message:  "gate severity: Deployment shop/ledger spec.selector: required",
					Finished: metav1.NewTime(now),
				},
				Took: time.Second,
			},
			20,
		)
		state.Ready(
			now,
			false,
			v1alpha1.ReasonGateClosed,
			"gate severity: Deployment shop/ledger spec.selector: required",
			true,
		)
	case "web-us":
		state.Mesh.Findings = []status.WorkloadFinding{{Workload: "StatefulSet shop/web-db", Codes: []string{"PR101"}}}
	}
	if _, err := s.Store.Save(t.Context(), p.Key(), state, 0); err != nil {
		t.Fatal(err)
	}
}

// addRuns adds a day of runs.
func addRuns(state *status.State, published v1alpha1.Published, now time.Time, seed int) {
	for i := range 20 {
		age := time.Duration(19-i) * 67 * time.Minute
		took := time.Duration(200+(i*i*seed*37)%2600) * time.Millisecond
		run := status.Run{Run: v1alpha1.Run{
			ID: fmt.Sprintf(
				"run%d",
				i,
			), Revision: published.SourceRevision, Author: "Ada Example", Subject: "Raise Istio to 1.32.0", Outcome: status.Published,
			Message: "4 objects; 0 files added, 1 changed, 0 removed", Finished: metav1.NewTime(now.Add(-age)),
		}, Reason: "push to main", Took: took, Passed: took + time.Duration(seed*90)*time.Millisecond, Published: []v1alpha1.Published{published}}
		switch {
		case i%7 == 3:
			run.Outcome, run.Message = status.Failed, "building apps: reading values.yaml:10: [ is not closed"
		case i%4 == 1:
			run.Outcome, run.Message = status.Unchanged, "4 objects, none different from what is published"
		}
		state.Add(run, 20)
	}
	state.Ready(now, true, meta.SucceededReason, "4 objects; 0 files added, 1 changed, 0 removed", false)
}

// saveWaves stores what the promoter has decided: the first wave has to be green for another six minutes.
func saveWaves(t *testing.T, s *Server, url string) {
	t.Helper()
	now := time.Now()
	for _, e := range s.Catalog.All() {
		to := e.Pipeline.Spec.Publish[0].Git
		cluster := e.Pipeline.Metadata.Labels["cluster"]
		head := to.PullRequest.HeadOf(to, cluster)
		err := s.Store.ChangeGroup(
			t.Context(),
			v1alpha1.BranchKey(url, to.Branch)+"\n"+head,
			func(g *status.Group) bool {
				g.Head, g.State, g.Since = head, promotion.StageWaiting, now.Add(-20*time.Minute)
				g.Say(status.Plain("waits for eu: green; must stay green"))
				if cluster == "eu" {
					g.State, g.Since, g.Until = promotion.StageVerifying, now.Add(
						-4*time.Minute,
					), now.Add(
						6*time.Minute,
					)
					g.Landed = &status.Landed{
						Number: 40,
						URL:    "https://git.example.com/shop/rendered/pulls/40",
						At:     now.Add(-4 * time.Minute),
					}
					g.Say(status.Plain("green; must stay green"))
				}
				return true
			},
		)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// upgradePages are the pages in the middle of an upgrade.
var upgradePages = map[string]string{
	"list": "/", "mesh": "/mesh", "workloads": "/workloads", "workload": workloadLink("shop/web-eu", "Deployment shop/web"),
	"rejected": workloadLink(
		"shop/ledger-ap",
		"Deployment shop/ledger",
	), "pipeline": "/pipeline?name=shop/web-eu", "drifted": "/pipeline?name=shop/cart-eu",
	"drift": "/drift?name=shop/cart-eu", "pulls": "/pull-requests", "groups": "/?group=cluster",
}

// TestPagesOfAnUpgrade reads the pages in the middle of an upgrade in waves.
func TestPagesOfAnUpgrade(t *testing.T) {
	v := newVisitor(t, serveAdmin(t, upgradeServer(t), Access{Insecure: true}))
	for name, path := range upgradePages {
		checkPage(t, name, v.visit(path))
	}
	mesh := v.visit("/mesh")
	for _, want := range []string{"Waves to rendered by cluster", "wave <strong>us</strong> (2 of 3)", "waits for eu", "1.31.4", "2 pods in eu", "opted out"} {
		if !strings.Contains(mesh.text, want) {
			t.Errorf("the mesh lacks %q:\n%s", want, mesh.text)
		}
	}
	if got := strings.Join(numbersOf(v.visit("/pull-requests"), "stop"), "|"); !strings.Contains(
		got,
		"eu 4 pipelines 1.32.0 Verifying",
	) ||
		!strings.Contains(got, "5 min left") && !strings.Contains(got, "6 min left") {
		t.Errorf("the rail is %q", got)
	}
	if got := v.visit("/drift?name=shop/cart-eu"); !strings.Contains(got.text, "replicas: 30") {
		t.Errorf("the difference of the drift:\n%s", got.text)
	}
	if got := v.visit(workloadLink("shop/web-us", "Deployment shop/web")); !strings.Contains(
		got.text,
		"proposed for",
	) ||
		!strings.Contains(got.text, `<span class="state open">in review</span>`) {
		t.Errorf("a workload that waits:\n%s", got.text)
	}
	if got := v.visit("/pipeline?name=shop/cart-eu"); !strings.Contains(
		got.text,
		`href="/drift?name=shop%2fcart-eu"`,
	) {
		t.Error("the page of a drifted pipeline does not lead to the difference")
	}
}

// TestUpgradeInEveryWindow opens the same pages wide and narrow, light and dark, and reverts by keyboard what others
// have changed.
func TestUpgradeInEveryWindow(t *testing.T) {
	s := upgradeServer(t)
	b := openBrowser(t, serveAdmin(t, s, Access{}))
	b.signIn()
	for name, path := range upgradePages {
		for _, way := range windows {
			b.Look(way.width, way.height, way.dark, true)
			b.visit(path)
			b.expectInWindow(path + ", " + way.name)
			b.shot("upgrade-" + name + "-" + way.name)
		}
	}
	for _, name := range []string{"mesh", "pipeline", "list"} {
		b.Look(1280, 2200, false, true)
		b.visit(upgradePages[name])
		b.shot("upgrade-" + name + "-tall")
	}
	b.Look(1280, 900, false, true)
	b.visit("/mesh")
	b.tabTo("a.tile[href*=risky]")
	b.Press("Enter")
	b.wait("document.querySelector('h1')?.textContent.includes('Workloads')")
	b.tabTo("#list td a")
	b.Press("Enter")
	b.wait("document.querySelector('#manifest table')")
	b.Look(1280, 900, false, false)
	b.visit("/drift?name=shop/cart-eu")
	b.tabTo("button[value=retry]")
	b.Press("Enter")
	b.wait("document.querySelector('h1')?.textContent.includes('Revert')")
	if s.Store.Control("shop/cart-eu").Force {
		t.Error("it was reverted without a question")
	}
	b.shot("upgrade-revert")
	b.tabTo("button.danger, main form button")
	b.Press("Enter")
	b.wait("document.querySelector('.notice')")
	if !s.Store.Control("shop/cart-eu").Force {
		t.Error("it is not reverted")
	}
	b.expectNoProblems()
}
