// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/daemon/status"
)

// BenchmarkTenThousand makes pages of 10,000 pipelines in 200 namespaces that have all run, a tenth of which say the same.
func BenchmarkTenThousand(b *testing.B) {
	var text strings.Builder
	for i := range 10_000 {
		namespace := fmt.Sprintf("namespace: team-%d", i%200)
		publish := "  publish: [{git: {branch: rendered, path: app-" + fmt.Sprint(i) + ", pullRequest: {provider: Gitea, groupBy: Namespace, secretRef: {name: bot}}}}]\n"
		text.WriteString(strings.Replace(fmt.Sprintf(object, fmt.Sprintf("app-%05d", i), fmt.Sprintf("repository-%d", i%50), publish), "namespace: team}", fmt.Sprintf("%s, labels: {cluster: cluster-%d}}", namespace, i%40), 1))
	}
	s := with(b, map[string]string{"all.yaml": text.String()})
	for i := range 10_000 {
		outcome, message := status.Published, "2 objects; 0 files added, 1 changed, 0 removed"
		if i%10 == 0 {
			outcome, message = status.Failed, "the chart cannot be found"
		}
		name := fmt.Sprintf("team-%d/app-%05d", i%200, i)
		save(b, s.Store, name, outcome, message, false)
		saveMesh(b, s.Store, name, i)
	}
	if err := s.Store.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
	h := s.Admin(Access{Trusted: true})
	for _, path := range []string{"/", "/?group=namespace", "/?group=cluster&in=cluster-7", "/?find=app-07&sort=time", "/pull-requests", "/mesh", "/workloads", "/workloads?show=risky&page=9"} {
		b.Run(strings.ReplaceAll(path, "/", "_"), func(b *testing.B) {
			size := 0
			for b.Loop() {
				response, body := get(b, h, path)
				size = len(body)
				if response.StatusCode != http.StatusOK {
					b.Fatal(response.Status)
				}
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

// saveMesh has a pipeline have two workloads with a sidecar, and two without.
func saveMesh(t testing.TB, store *status.Store, name string, i int) {
	t.Helper()
	state, revision, err := store.Load(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	app := fmt.Sprintf("shop/app-%05d", i)
	state.Mesh = &status.Mesh{Decided: []status.Decided{
		{Action: "injected", Code: "webhook", Reason: "namespace label istio-injection=enabled", Version: fmt.Sprintf("1.31.%d", i%3), Workloads: []string{"Deployment " + app, "StatefulSet " + app}},
		{Action: "skipped", Code: "host-network", Reason: "the pod is on the host's network", Workloads: []string{"DaemonSet " + app, "Job " + app}},
	}}
	if i%10 == 0 {
		state.Mesh.Findings = []status.WorkloadFinding{{Workload: "Deployment " + app, Codes: []string{"PR201"}}}
	}
	if _, err := store.Save(t.Context(), name, state, revision); err != nil {
		t.Fatal(err)
	}
}
