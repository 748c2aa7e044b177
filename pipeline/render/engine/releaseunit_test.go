// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
)

// TestApplicationsAsUnits renders each Application to a unit of its own: one that renders the directory of its own file, Applications for
// several clusters with the same objects, and one that fails and leaves the others alone.
func TestApplicationsAsUnits(t *testing.T) {
	files := argoTree("")
	delete(files, "app/app.yaml")
	other := strings.Replace(applicationOf("other", "plain", ""), "name: in-cluster", "name: other", 1)
	files["app/root.yaml"] = applicationOf("root", "app", "    directory: {exclude: kept.yaml}\n") + applicationOf("web", "plain", "") + other + applicationOf("broken", "broken", "")
	files["app/set.yaml"] = applicationSet("  - list: {elements: [{name: made}]}\n", "{{name}}", "")
	files["app/kept.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, namespace: argocd}\n"
	r := releasesRequest("app")
	r.Releases.PerApplication = true
	response, _ := mustRender(t, files, r)
	plain := "ConfigMap a, ConfigMap a2, ConfigMap b"
	want := map[string]string{"": "ConfigMap kept", "argocd/web": plain, "argocd/other": plain, "argocd/made": "Deployment web"}
	if got := unitsOf(response); !maps.Equal(got, want) {
		t.Errorf("the units are %v", got)
	}
	if !slices.Equal(response.Failed, []string{"argocd/broken"}) {
		t.Errorf("%v failed", response.Failed)
	}
	if got := findingsOf(response, result.Error); strings.Count(got, "\n") != 0 || !strings.HasPrefix(got, "argocd/broken | error: app/root.yaml:37: Application argocd/broken spec.source.path: ") {
		t.Error(got)
	}
}

// TestPlainFile renders a single file of manifests.
func TestPlainFile(t *testing.T) {
	files := argoTree("")
	response, _ := mustRender(t, files, request("plain/a.yaml"))
	if got := ids(response); got != "v1 ConfigMap a\nv1 ConfigMap a2" {
		t.Error(got)
	}
}

// TestChartsOfRegistries: the chart of a registry may have directories, if the repository is only the host.
func TestChartsOfRegistries(t *testing.T) {
	for source, want := range map[string]string{
		"repoURL: registry.example.com, chart: charts/web": "oci://registry.example.com/charts web",
		"repoURL: registry.example.com/charts, chart: web": "oci://registry.example.com/charts web",
	} {
		app := "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: argocd}\n" +
			"spec:\n  destination: {name: in-cluster, namespace: shop}\n  source: {" + source + ", targetRevision: 1.0.0}\n"
		response, _ := mustRender(t, argoTree(app), releasesRequest("app"))
		if len(response.Wanted) != 1 || response.Wanted[0].Repository+" "+response.Wanted[0].Name != want {
			t.Errorf("%s: %+v, %v", source, response.Wanted, response.Results)
		}
	}
}
