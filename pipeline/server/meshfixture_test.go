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
	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/fn"
	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/oci"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/pipeline/verify"
)

// mirrors reaches repositories of Git.
type mirrors struct{ store *git.Store }

func (m mirrors) Repository(
	_ context.Context,
	_, url string,
	_ *meta.LocalObjectReference,
) (*git.Mirror, *git.Remote, error) {
	mirror, err := m.store.Mirror(url)
	if err != nil {
		return nil, nil, err
	}
	remote, err := git.NewRemote(url, nil, nil)
	return mirror, remote, err
}

func (mirrors) Registry(string, map[string][]byte, bool) (*oci.Registry, error) {
	return nil, fmt.Errorf("there is no registry")
}

const plainDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: shop}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers:
      - name: NAME # the user's
        image: registry.example.com/NAME:1
`

// injectedDeployment is a Deployment with Istio's sidecar.
func injectedDeployment(t testing.TB, name string) string {
	t.Helper()
	p, err := policyv1alpha1.Parse(
		[]byte(
			"apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec: {istio: {injector: {builtIn: istio, overrides: {global: {tag: 1.31.1}}}}}\n",
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	injector, err := fn.New([]*policyv1alpha1.InjectionPolicy{p})
	if err != nil {
		t.Fatal(err)
	}
	file, err := manifest.Parse("", []byte(strings.ReplaceAll(plainDeployment, "NAME", name)))
	if err != nil {
		t.Fatal(err)
	}
	report, err := injector.Run(t.Context(), []fn.Item{{Doc: file.Docs[0]}})
	if err != nil || report.Failed() || report.Changed() != 1 {
		t.Fatalf("%v, %v", err, report)
	}
	return report.Items[0].Doc.Text()
}

// meshPipelines are pipelines of a mesh: two clusters of shop, and one pipeline of another team in the first cluster.
const meshPipeline = `---
apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: %s, namespace: %s, labels: {cluster: %s}}
spec:
  source: {git: {url: "https://git.example.com/config.git"}}
  policies: [{file: mesh.yaml}]
  publish: [{git: {url: %q, branch: rendered, path: %s}}]
`

// meshServer has published workloads in a repository, and a cluster that is compared with it.
func meshServer(t *testing.T) *Server {
	t.Helper()
	repository := gittest.New(t).Repository(t, "config")
	var text strings.Builder
	for _, one := range [][3]string{{"web-eu", "shop", "eu"}, {"web-us", "shop", "us"}, {"coin-eu", "vault", "eu"}} {
		fmt.Fprintf(&text, meshPipeline, one[0], one[1], one[2], repository.URL, one[0])
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
	s.Promoter = &promotion.Promoter{
		Catalog: s.Catalog,
		Store:   s.Store,
		Queue:   s.Queue,
		Targets: targets,
		Log:     slog.New(slog.DiscardHandler),
	}
	publishWorkloads(t, s, targets)
	s.Clusters = func() []VerifiedCluster {
		pods := []verify.Pod{
			{
				Namespace: "shop",
				Name:      "web-1",
				Workload:  "Deployment shop/web",
				State:     verify.Changed,
				File:      "web-eu/web.yaml",
			},
			{
				Namespace: "shop",
				Name:      "coin-1",
				Workload:  "Deployment shop/coin",
				State:     verify.Changed,
				File:      "coin-eu/coin.yaml",
			},
			{Namespace: "shop", Name: "odd", Workload: "Deployment shop/odd", State: verify.Foreign},
		}
		report := &verify.Report{Pods: pods, Counts: map[verify.State]int{verify.Changed: 2, verify.Foreign: 1}}
		return []VerifiedCluster{
			{Name: "eu", URL: repository.URL, Branch: "rendered", Report: report},
			{Name: "us", URL: repository.URL, Branch: "rendered"},
		}
	}
	return s
}

// publishWorkloads publishes a Deployment of each pipeline, and saves its state.
func publishWorkloads(t *testing.T, s *Server, targets *publish.Targets) {
	t.Helper()
	now := time.Now()
	for name, workload := range map[string]string{"shop/web-eu": "web", "shop/web-us": "web", "vault/coin-eu": "coin"} {
		e, _ := s.Catalog.Get(name)
		if e.Err != nil {
			t.Fatal(e.Err)
		}
		to := e.Pipeline.Spec.Publish[0]
		target, err := targets.Open(t.Context(), e.Pipeline.Metadata.Namespace, to)
		if err != nil {
			t.Fatal(err)
		}
		secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: keys, namespace: shop}\nstringData:\n  key: hunter2\n"
		receipt, err := target.Publish(t.Context(), publish.Change{
			Pipeline: name, Tool: "test", Files: map[string][]byte{workload + ".yaml": []byte(injectedDeployment(t, workload)), "keys.yaml": []byte(secret)},
		})
		if err != nil {
			t.Fatal(err)
		}
		state := &status.State{}
		state.Ready(now, true, "Succeeded", "2 objects", false)
		published := v1alpha1.Published{Target: to.Target(), Revision: receipt.Revision, Istio: "1.31"}
		state.Add(status.Run{
			Run: v1alpha1.Run{
				ID:       "run1",
				Outcome:  status.Published,
				Message:  "2 objects",
				Started:  metav1.NewTime(now),
				Finished: metav1.NewTime(now),
			},
			Since: now.Add(
				-2 * time.Second,
			), Took: 300 * time.Millisecond, Passed: 2 * time.Second, Published: []v1alpha1.Published{published},
			Findings: []string{"warning: Deployment shop/" + workload + ": PR201: it may start too early"},
		}, 20)
		state.Status.Published = []v1alpha1.Published{published}
		state.Seen.Targets = map[string]tree.Record{to.Target(): receipt.Record}
		state.Mesh = &status.Mesh{
			Decided: []status.Decided{
				{
					Action:    "injected",
					Code:      "webhook",
					Reason:    "its namespace asks",
					Version:   "1.31.1",
					Workloads: []string{"Deployment shop/" + workload},
				},
				{
					Action:    "skipped",
					Code:      "host-network",
					Reason:    "it is on the host's network",
					Workloads: []string{"DaemonSet shop/" + workload + "-node"},
				},
			},
			Findings: []status.WorkloadFinding{{Workload: "Deployment shop/" + workload, Codes: []string{"PR201"}}},
		}
		if _, err := s.Store.Save(t.Context(), name, state, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// workloadLink is the address of the page of a workload.
func workloadLink(pipeline, name string) string {
	return workloadRow{Pipeline: pipeline, Name: name}.Link()
}

// numbersOf returns the texts of elements of a class.
func numbersOf(p *page, class string) (out []string) {
	for _, n := range p.all(func(n *html.Node) bool { return strings.Fields(valueOf(n, "class") + " -")[0] == class }) {
		out = append(out, textOf(n))
	}
	return out
}
