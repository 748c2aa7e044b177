// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
)

// userSecret is a template that looks an object up.
const userSecret = "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}}\nstringData:\n" +
	"  user: {{ (lookup \"v1\" \"ConfigMap\" \"shop\" \"users\").data.name }}\n"

const users = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: users, namespace: shop}\ndata: {name: admin}\n"

// checkCaptured renders files in the isolated process with the objects in cluster/shop.yaml, and checks that the render depends on them.
func checkCaptured(t *testing.T, files map[string]string, r render.Request) {
	t.Helper()
	files["cluster/shop.yaml"] = users
	first, record := mustRender(t, files, r)
	if !strings.Contains(text(first), "user: admin") {
		t.Errorf("got %s", text(first))
	}
	files["cluster/shop.yaml"] = strings.Replace(users, "admin", "root", 1)
	if _, affected := record.Affected(build(t, files)); !affected {
		t.Error("the captured objects were not read")
	}
	changed, _ := mustRender(t, files, r)
	if !strings.Contains(text(changed), "user: root") {
		t.Errorf("after a change: got %s", text(changed))
	}
}

// TestCapturedHelm renders a chart with captured objects.
func TestCapturedHelm(t *testing.T) {
	checkCaptured(t, map[string]string{
		"apps/shop/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n", "apps/shop/templates/s.yaml": userSecret,
	}, release(func(h *v1alpha1.Helm) { h.Lookup, h.Captured = v1alpha1.LookupCaptured, "cluster/shop.yaml" }))
}

// TestCapturedReleases does the same for releases.
func TestCapturedReleases(t *testing.T) {
	for name, app := range map[string]string{"HelmRelease": helmRelease(chartInGit) + gitRepository, "Application": argoApplication("")} {
		t.Run(name, func(t *testing.T) {
			r := releasesRequest("app")
			r.Releases.Lookup, r.Releases.Captured = v1alpha1.LookupCaptured, "cluster/shop.yaml"
			checkCaptured(t, map[string]string{
				"app/app.yaml": app, "charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "charts/web/templates/s.yaml": userSecret,
			}, r)
		})
	}
}

// TestCapturedHelmCharts does the same for a chart of a kustomization.
func TestCapturedHelmCharts(t *testing.T) {
	r := request("app")
	r.HelmCharts = &v1alpha1.HelmCharts{Lookup: v1alpha1.LookupCaptured, Captured: "cluster/shop.yaml"}
	checkCaptured(t, map[string]string{
		"app/kustomization.yaml": entry + "  namespace: shop\n  releaseName: one\n", "app/charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"app/charts/web/templates/s.yaml": userSecret,
	}, r)
}

// TestFieldsOfReleases looks at errors: each names the field that its user has.
func TestFieldsOfReleases(t *testing.T) {
	const needsNewer = "apiVersion: v2\nname: web\nversion: 1.0.0\nkubeVersion: '>=1.99'\n"
	const remote = "{\"$ref\": \"https://example.com/schema.json\"}"
	hr, app, kustomization := helmRelease(chartInGit)+gitRepository, argoApplication(""), entry+"  releaseName: web\n"
	for name, c := range map[string]struct {
		app, chart, template, schema string
		change                       func(*v1alpha1.Releases)
		want                         string
	}{
		"impure":         {app: hr, template: "{{ now }}", want: "or set spec.build.releases.impure"},
		"lookup":         {app: hr, template: "{{ lookup \"v1\" \"Pod\" \"\" \"\" }}", want: "set spec.build.releases.lookup to Captured"},
		"captured":       {app: hr, change: func(r *v1alpha1.Releases) { r.Lookup, r.Captured = v1alpha1.LookupCaptured, "gone.yaml" }, want: "reading spec.build.releases.captured: "},
		"hooks":          {app: app, template: "\n  annotations: {helm.sh/hook: pre-install}", change: func(r *v1alpha1.Releases) { r.Hooks = v1alpha1.HooksRefuse }, want: "and spec.build.releases.hooks is Refuse"},
		"version":        {app: hr, chart: needsNewer, want: "and spec.build.releases.kubeVersion is 1.33.4"},
		"own version":    {app: argoApplication("    helm: {kubeVersion: 1.32.1}\n"), chart: needsNewer, want: "and spec.source.helm.kubeVersion is 1.32.1"},
		"schema":         {app: hr, schema: remote, want: "set spec.install.disableSchemaValidation to do without"},
		"own schema":     {app: app, schema: remote, want: "set spec.source.helm.skipSchemaValidation to do without"},
		"kustomization":  {app: kustomization, template: "{{ now }}", want: "or set spec.build.helmCharts.impure"},
		"entry's schema": {app: kustomization, schema: remote, want: "and a render uses no network"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"app/app.yaml": c.app}
			charts := "charts/web/"
			if c.app == kustomization {
				files, charts = map[string]string{"app/kustomization.yaml": c.app + "  kubeVersion: 1.33.4\n"}, "app/charts/web/"
			}
			files[charts+"Chart.yaml"] = cmp.Or(c.chart, "apiVersion: v2\nname: web\nversion: 1.0.0\n")
			files[charts+"templates/s.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web" + c.template + "\n"
			if c.schema != "" {
				files[charts+"values.schema.json"] = c.schema
			}
			r := releasesRequest("app")
			if c.change != nil {
				c.change(r.Releases)
			}
			response, _, err := renderFiles(t, files, r)
			got := fmt.Sprint(err)
			if err == nil {
				got = fmt.Sprint(response.Results)
			}
			if !strings.Contains(got, c.want) || strings.Contains(got, " helm.") {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}
