// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
)

// waveServer has a pipeline in the second of two waves, whose result waits for its turn; its cluster has 1.31.1.
func waveServer(t *testing.T) *Server {
	t.Helper()
	publishing := `  publish: [{git: {url: "https://git.example.com/out.git", branch: prod, path: web, pullRequest: {provider: Gitea, groupBy: Label, label: cluster, waves: {order: [eu, us]}, secretRef: {name: bot}}}}]
`
	text := fmt.Sprintf(object, "web", "config", publishing)
	text = strings.Replace(text, "namespace: team}", "namespace: shop, labels: {cluster: us}}", 1)
	s := with(t, map[string]string{"web.yaml": text})
	s.Promoter = &promotion.Promoter{
		Catalog: s.Catalog, Store: s.Store, Queue: s.Queue, Log: slog.New(slog.DiscardHandler),
	}
	e, _ := s.Catalog.Get("shop/web")
	if e.Err != nil {
		t.Fatal(e.Err)
	}
	to := e.Pipeline.Spec.Publish[0]
	workloads := []string{"Deployment shop/a", "Deployment shop/b"}
	state := &status.State{Mesh: &status.Mesh{
		OnBranch: &status.OnBranch{Proxies: []status.Proxies{{Version: "1.31.1", Workloads: workloads}}},
		Decided:  []status.Decided{{Action: "injected", Version: "1.32.0", Workloads: workloads}},
		Findings: []status.WorkloadFinding{
			{Workload: workloads[0], Codes: []string{"PR201", "warning"}, Counts: map[string]int{"PR201": 3}},
		},
	}}
	state.Status.Published = []v1alpha1.Published{{Target: to.Target(), PullRequest: &v1alpha1.PullRequestStatus{
		Number: 3, URL: "https://git.example.com/out/pulls/3", State: v1alpha1.PullRequestWaiting,
		Head: to.Git.PullRequest.HeadOf(to.Git, "us"),
	}}}
	state.Ready(time.Now(), true, "Succeeded", "2 objects", false)
	if _, err := s.Store.Save(t.Context(), "shop/web", state, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAWaveThatWaitsForItsTurnIsNotStopped: no person has done anything, and the pull request of the last rollout is
// not that of this one.
func TestAWaveThatWaitsForItsTurnIsNotStopped(t *testing.T) {
	p := newVisitor(t, serveAdmin(t, waveServer(t), Access{Insecure: true})).visit("/pull-requests")
	checkPage(t, "a wave that waits", p)
	if !strings.Contains(p.text, "0 in review, 1 waiting") || strings.Contains(p.text, "pulls/3") ||
		!strings.Contains(p.text, "is opened when it is its turn") || strings.Contains(p.text, "1 stopped") {
		t.Errorf("the page:\n%s", p.text)
	}
	if got := strings.Join(numbersOf(p, "istio"), "|"); got != "1.31.1 next → 1.32.0" {
		t.Errorf("the versions of the waves are %q", got)
	}
}

// TestWorkloadsAreFoundByTheVersionThatTheyHave: a card leads to the workloads that it counts, and a row shows what is
// next.
func TestWorkloadsAreFoundByTheVersionThatTheyHave(t *testing.T) {
	v := newVisitor(t, serveAdmin(t, waveServer(t), Access{Insecure: true}))
	links := v.visit("/mesh").all(func(n *html.Node) bool {
		return n.Data == "a" && strings.Contains(valueOf(n, "href"), "version=1.31.1")
	})
	if len(links) != 1 {
		t.Fatalf("%d links", len(links))
	}
	p := v.visit(valueOf(links[0], "href"))
	checkPage(t, "workloads of a version", p)
	if rows := numbersOf(p, "version"); len(rows) < 2 || !strings.HasPrefix(rows[len(rows)-1], "1.31.1 next → 1.32.0 waits") {
		t.Errorf("the versions are %q", rows)
	}
	for _, want := range []string{"PR201</code> × 3", "1 warning"} {
		if !strings.Contains(p.text, want) {
			t.Errorf("the page lacks %q:\n%s", want, p.text)
		}
	}
	for query, want := range map[string]int{"version=1.32.0": 0, "namespace=shop&cluster=*": 2, "namespace=other": 0, "cluster=eu": 0} {
		if got := max(0, len(v.visit("/workloads?"+query).all(named("tr")))-1); got != want {
			t.Errorf("%s: %d workloads", query, got)
		}
	}
}

// TestAWaveHasButtons holds all pipelines of a wave, which its stop shows then.
func TestAWaveHasButtons(t *testing.T) {
	s := waveServer(t)
	v := serveNeighbours(t, s).visitorOf(t, "operator")
	p := v.visit("/pull-requests")
	buttons := p.all(func(n *html.Node) bool { return n.Data == "button" && valueOf(n, "name") == "action" })
	var names []string
	for _, n := range buttons {
		names = append(names, textOf(n))
	}
	if got := strings.Join(names, "|"); got != "Promote us|Hold us|Roll back us" {
		t.Errorf("the buttons are %q", got)
	}
	if err := s.Promoter.Hold(t.Context(), []string{"shop/web"}, "ann", "a freeze"); err != nil {
		t.Fatal(err)
	}
	p = v.visit("/mesh")
	if !strings.Contains(p.text, `<li class="stop held">`) || !strings.Contains(p.text, "a freeze") {
		t.Errorf("the wave is not held:\n%s", p.text)
	}
	links := p.all(func(n *html.Node) bool { return strings.Contains(valueOf(n, "href"), "wave=") })
	if len(links) == 0 || len(shown(v.visit(valueOf(links[len(links)-1], "href")).text)) != 1 {
		t.Errorf("%d links lead to the pipelines of waves", len(links))
	}
}
