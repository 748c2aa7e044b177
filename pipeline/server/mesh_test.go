// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/server/access"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// TestMeshByCluster shows what each cluster has, and what became of its workloads.
func TestMeshByCluster(t *testing.T) {
	v := newVisitor(t, serveAdmin(t, meshServer(t), Access{Insecure: true}))
	p := v.visit("/mesh")
	checkPage(t, "the mesh", p)
	want := "6 workloads|3 injected|3 skipped|3 risky lint|0 rejected gate|2 different verify"
	if got := strings.Join(numbersOf(p, "tile"), "|"); got != want {
		t.Errorf("the tiles are %q", got)
	}
	got := strings.Join(numbersOf(p, "cluster"), "|")
	for _, want := range []string{"eu 4 workloads", "us 2 workloads", "1.31.1 2", "2 different"} {
		if !strings.Contains(got, want) {
			t.Errorf("the clusters lack %q: %q", want, got)
		}
	}
	for _, want := range []string{"3 commits", "half within <strong>2.0 s</strong>", "host network", "1 pod in eu"} {
		if !strings.Contains(p.text, want) {
			t.Errorf("the page lacks %q:\n%s", want, p.text)
		}
	}
	if list := v.visit("/"); len(numbersOf(list, "cluster")) != 2 {
		t.Errorf("the first page:\n%s", list.text)
	}
	if list := v.visit("/?find=web"); len(numbersOf(list, "cluster")) != 0 {
		t.Error("a part of the list has the mesh above it")
	}
}

// TestWorkloads follows a workload from the list to its manifest, in which exactly the injected lines are marked.
func TestWorkloads(t *testing.T) {
	v := newVisitor(t, serveAdmin(t, meshServer(t), Access{Insecure: true}))
	for path, want := range map[string]int{
		"/workloads": 6, "/workloads?show=injected": 3, "/workloads?show=skipped&reason=host+network": 3, "/workloads?show=risky&cluster=eu": 2,
		"/workloads?show=rejected": 0, "/workloads?show=different": 2, "/workloads?version=1.31.1": 3, "/workloads?find=COIN": 2, "/workloads?show=odd&page=99": 6,
	} {
		p := v.visit(path)
		checkPage(t, path, p)
		if got := len(p.all(named("tr"))) - 1; max(0, got) != want {
			t.Errorf("%s shows %d workloads", path, got)
		}
	}
	p := v.visit(workloadLink("shop/web-eu", "Deployment shop/web"))
	checkPage(t, "a workload", p)
	for _, want := range []string{"its namespace asks", "1.31.1", "PR201: it may start too early", `<span class="state failing">different</span>`, "published to"} {
		if !strings.Contains(p.text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	injected, own := 0, 0
	for _, n := range p.all(named("tr")) {
		text := textOf(n)
		isMarked := valueOf(n, "class") == "injected"
		if isMarked {
			injected++
		}
		if strings.Contains(text, "istio-proxy") && !isMarked || strings.Contains(text, "# the user's") && isMarked {
			t.Errorf("%q is marked: %t", text, isMarked)
		}
		if strings.Contains(text, "# the user's") {
			own++
		}
	}
	if injected < 50 || own != 1 {
		t.Errorf("%d lines are marked, and the user's line is there %d times", injected, own)
	}
	if got := v.visit(workloadLink("shop/web-eu", "Deployment shop/none")); got.code != http.StatusNotFound {
		t.Errorf("a workload that is not there: %d", got.code)
	}
	if got := v.visit(workloadLink("shop/web-eu", "DaemonSet shop/web-node")); got.code != http.StatusOK ||
		!strings.Contains(got.text, "Nothing is published") {
		t.Errorf("a workload of which nothing is published: %d\n%s", got.code, got.text)
	}
}

// TestFilesOfAPipeline shows rendered files of the pipeline and no others, without the values of Secrets.
func TestFilesOfAPipeline(t *testing.T) {
	v := newVisitor(t, serveAdmin(t, meshServer(t), Access{Insecure: true}))
	p := v.visit("/pipeline?name=shop/web-eu")
	checkPage(t, "a pipeline", p)
	var links []string
	for _, n := range p.all(func(n *html.Node) bool { return strings.HasPrefix(valueOf(n, "href"), "/file?") }) {
		links = append(links, valueOf(n, "href"))
	}
	if len(links) != 2 || !strings.Contains(p.text, "feeds 3 pipelines") || len(numbersOf(p, "ticks")) != 1 {
		t.Fatalf("the files are %q\n%s", links, p.text)
	}
	for _, link := range links {
		file := v.visit(link)
		checkPage(t, link, file)
		if file.code != http.StatusOK || strings.Contains(file.text, "hunter2") ||
			strings.Contains(link, "keys") != strings.Contains(file.text, "***") {
			t.Errorf("%s: %d\n%s", link, file.code, file.text)
		}
		for _, others := range []string{"coin-eu/coin.yaml", "../rendered/web.yaml", ".prerig/pipelines", "<b>"} {
			if got := v.visit(strings.Replace(link, "path=web-eu", "path="+others+"&x=", 1)); got.code != http.StatusNotFound ||
				strings.Contains(got.text, "<b>") {
				t.Errorf("%s: %d", others, got.code)
			}
		}
	}
	if got := shown(v.visit("/?policy=file+mesh.yaml").text); len(got) < 3 {
		t.Errorf("the pipelines of a policy: %q", got)
	}
}

// TestWorkloadsOfOthersAreNotCounted asks for the mesh with a token of one namespace.
func TestWorkloadsOfOthersAreNotCounted(t *testing.T) {
	s := meshServer(t)
	n := serveNeighbours(t, s)
	for _, path := range []string{"/", "/mesh", "/workloads", "/workloads?show=different", "/pipeline?name=shop/web-eu", "/?policy=file+mesh.yaml"} {
		code, body := n.ask(t, "reader", path, "")
		if code != http.StatusOK || strings.Contains(body, "coin") || strings.Contains(body, "vault") ||
			strings.Contains(body, "Not from Git") ||
			strings.Contains(body, "odd") {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
	}
	v := n.visitorOf(t, "reader")
	if got, want := strings.Join(numbersOf(v.visit("/mesh"), "tile"), "|"), "4 workloads|2 injected|2 skipped|2 risky lint|0 rejected gate|1 different verify"; got != want {
		t.Errorf("the tiles are %q", got)
	}
	if got := v.visit("/pipeline?name=shop/web-eu").text; !strings.Contains(got, "feeds 2 pipelines") {
		t.Error("a policy feeds pipelines of others")
	}
	if got := v.visit(workloadLink("vault/coin-eu", "Deployment shop/coin")); got.code != http.StatusNotFound {
		t.Errorf("a workload of others: %d", got.code)
	}
}

// TestPodsCountForTheOwnerOfTheirFile: a pipeline with a workload of the same name learns nothing about the pods of
// others.
func TestPodsCountForTheOwnerOfTheirFile(t *testing.T) {
	s := meshServer(t)
	state, revision, err := s.Store.Load(t.Context(), "shop/web-eu")
	if err != nil {
		t.Fatal(err)
	}
	state.Mesh.Decided[0].Workloads = append(state.Mesh.Decided[0].Workloads, "Deployment shop/coin")
	if _, err := s.Store.Save(t.Context(), "shop/web-eu", state, revision); err != nil {
		t.Fatal(err)
	}
	v := serveNeighbours(t, s).visitorOf(t, "reader")
	if got := len(v.visit("/workloads?show=different").all(named("tr"))) - 1; got != 1 {
		t.Errorf("%d workloads are different", got)
	}
}

// TestAnUpgradeIsShownAsNext has a version wait in a wave: the cluster still has the old one.
func TestAnUpgradeIsShownAsNext(t *testing.T) {
	publishing := `  publish: [{git: {url: "https://git.example.com/out.git", branch: prod, path: web, pullRequest: {provider: Gitea, groupBy: Label, label: cluster, waves: {order: [eu, us]}, secretRef: {name: bot}}}}]
`
	text := strings.Replace(
		fmt.Sprintf(object, "web", "config", publishing),
		"namespace: team}",
		"namespace: team, labels: {cluster: us}}",
		1,
	)
	s := with(t, map[string]string{"web.yaml": text})
	e, _ := s.Catalog.Get("team/web")
	if e.Err != nil {
		t.Fatal(e.Err)
	}
	to := e.Pipeline.Spec.Publish[0]
	head := to.Git.PullRequest.HeadOf(to.Git, "us")
	state := &status.State{Mesh: &status.Mesh{
		OnBranch: &status.OnBranch{Proxies: []status.Proxies{
			{Version: "1.31.1", Workloads: []string{"Deployment a/a", "Deployment a/b", "Deployment a/c"}},
		}},
		Decided: []status.Decided{
			{
				Action:    "injected",
				Version:   "1.32.0",
				Workloads: []string{"Deployment a/a", "Deployment a/b", "Deployment a/c"},
			},
		},
	}}
	state.Status.Published = []v1alpha1.Published{
		{
			Target:      to.Target(),
			PullRequest: &v1alpha1.PullRequestStatus{Number: 8, State: v1alpha1.PullRequestOpen, Head: head},
		},
	}
	if _, err := s.Store.Save(t.Context(), "team/web", state, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows := s.pipelineViews().visibleRows(
		access.Principal{Kind: access.BySocket, Grants: []access.Grant{{Role: access.Administer}}},
		false,
	)
	stage := promotion.StageStatus{
		Name:    "us",
		Head:    head,
		State:   promotion.StageWaiting,
		Message: "waits for eu",
		Since:   time.Now(),
		Until:   time.Now().Add(5*time.Minute + time.Second),
	}
	waves := []promotion.Promotion{
		{
			URL:    to.Git.URL,
			Branch: "prod",
			Waves:  true,
			Stages: []promotion.StageStatus{{Name: "eu", Head: "x"}, stage},
		},
	}
	mesh := s.pipelineViews().meshOf(rows, waves, nil)
	if len(mesh.Clusters) != 1 {
		t.Fatalf("%+v", mesh)
	}
	c := mesh.Clusters[0]
	if c.Name != "us" || len(c.Versions) != 1 || c.Versions[0].Version != "1.31.1" || c.Versions[0].N != 3 ||
		len(c.Next) != 1 {
		t.Fatalf("%+v", c)
	}
	if next := c.Next[0]; next.Version != "1.32.0" || next.N != 3 || next.Wave == nil || next.Wave.Position != 2 ||
		next.Wave.Of != 2 ||
		next.Wave.Left != "5 min" {
		t.Errorf("%+v", next)
	}
}

// TestErrorsOfSeveralFilesAreFolded has the same mistake in several files, which the messages name.
func TestErrorsOfSeveralFilesAreFolded(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{"cart-eu", "cart-us", "cart"} {
		files[name+".yaml"] = fmt.Sprintf(object, name, "config", "  sauce: {}\n")
	}
	files["other.yaml"] = fmt.Sprintf(object, "other", "config", "  spice: {}\n")
	p := newVisitor(t, serveAdmin(t, with(t, files), Access{Insecure: true})).visit("/")
	if n := strings.Count(p.text, "sauce"); n != 1 || !strings.Contains(p.text, ">3 pipelines</a>") ||
		strings.Count(p.text, "same error (3 pipelines)") != 3 {
		t.Errorf("the mistake is named %d times:\n%s", n, p.text)
	}
	for text, want := range map[string]string{
		"cart fails, cart-eu and mycart do not; cart": "… fails, cart-eu and mycart do not; …", "cartcart": "cartcart", "": "", "a/cart.yaml": "a/….yaml", "cart": "…",
	} {
		if got := replaceName(text, "cart"); got != want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// TestEmptyPagesNameTheNextStep opens the pages of a daemon without pipelines, and of one that has not run yet.
func TestEmptyPagesNameTheNextStep(t *testing.T) {
	none := newVisitor(t, serveAdmin(t, with(t, nil), Access{Insecure: true}))
	fresh := newVisitor(
		t,
		serveAdmin(
			t,
			with(t, map[string]string{"web.yaml": fmt.Sprintf(object, "web", "config", "")}),
			Access{Insecure: true},
		),
	)
	for _, one := range []struct {
		v          *visitor
		path, want string
	}{
		{none, "/", "<code>prerig init</code>"}, {none, "/mesh", "after the first run"}, {none, "/workloads", "after the first run"},
		{none, "/pull-requests", "Set <code>spec.publish[].git.pullRequest</code>"}, {none, "/mesh", "prerig daemon reconcile"},
		{fresh, "/", "team/web"}, {fresh, "/mesh", `<a href="/">Pipelines</a>`}, {fresh, "/workloads?show=different", "after the first run"},
		{fresh, "/pipeline?name=team/web", "prerig daemon reconcile team/web"}, {fresh, "/pipeline?name=team/web", "set <code>spec.publish</code>"},
		{fresh, "/drift?name=team/web", "as it was rendered"},
	} {
		p := one.v.visit(one.path)
		checkPage(t, one.path, p)
		if p.code != http.StatusOK || !strings.Contains(p.text, one.want) {
			t.Errorf("%s lacks %q: %d\n%s", one.path, one.want, p.code, p.text)
		}
	}
}

// TestManifestsAreReadByFewAtATime: who comes later gets an answer, and no error page.
func TestManifestsAreReadByFewAtATime(t *testing.T) {
	m := newManifestReader(publish.NewTargets(nil, nil, nil, tree.Limits{}, nil))
	for i := range manifestTurns {
		if _, _, err := m.takeTurn(t.Context(), fmt.Sprintf("team-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := m.takeTurn(ctx, "another"); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("one more: %v", err)
	}
	if _, _, err := newManifestReader(nil).takeTurn(t.Context(), "team"); err == nil {
		t.Error("it reads without targets")
	}
}
