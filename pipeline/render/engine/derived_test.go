// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/derive"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// derivedKey is a key of a seed.
func derivedKey(t *testing.T, seed string) *derive.Key {
	t.Helper()
	key, err := derive.NewKey([]byte(strings.Repeat(seed, derive.MinSeed)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

const randomSecret = "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}}\nstringData:\n  password: {{ randAlphaNum 20 }}\n  ca: {{ (genCA \"a\" 10).Cert | toJson }}\n" +
	"  user: {{ (lookup \"v1\" \"ConfigMap\" \"shop\" \"users\").data.name }}\n"

const users = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: users, namespace: shop}\ndata: {name: admin}\n"

// TestDerivedHelm renders derived values and captured objects in the isolated process: the key goes there, and the file is one that
// was read.
func TestDerivedHelm(t *testing.T) {
	files := map[string]string{"apps/shop/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n", "apps/shop/templates/s.yaml": randomSecret, "cluster/shop.yaml": users}
	r := release(func(h *v1alpha1.Helm) {
		h.Impure, h.Derived = v1alpha1.ImpureDerived, &v1alpha1.HelmDerived{Time: "2026-01-01"}
		h.Lookup, h.Captured = v1alpha1.LookupCaptured, "cluster/shop.yaml"
	})
	r.DerivedKey = derivedKey(t, "a")
	first, record := mustRender(t, files, r)
	again, _ := mustRender(t, files, r)
	if first.Digest() != again.Digest() || !strings.Contains(text(first), "user: admin") || !strings.Contains(text(first), "BEGIN CERTIFICATE") {
		t.Errorf("got %s\n%s", text(first), text(again))
	}
	other := r
	other.DerivedKey = derivedKey(t, "b")
	changed, _ := mustRender(t, files, other)
	if changed.Digest() == first.Digest() || render.Fingerprint(record, &r, "v1") == render.Fingerprint(record, &other, "v1") {
		t.Error("another seed gives the same")
	}
	files["cluster/shop.yaml"] += "# more\n"
	if _, affected := record.Affected(build(t, files)); !affected {
		t.Error("the captured objects were not read")
	}
	view := tree.NewView(build(t, files), r.Limits.Read)
	r.DerivedKey = nil
	if _, err := pool(t, render.Options{}).Render(ctx, view, r); err == nil || !strings.Contains(err.Error(), "helm.impure is Derived, and there is no seed to derive from") {
		t.Error(err)
	}
}

// TestDerivedReleases does the same for releases, whose key is their own: a kustomization beside them may have another seed.
func TestDerivedReleases(t *testing.T) {
	for name, app := range map[string]string{"HelmRelease": helmRelease(chartInGit) + gitRepository, "Application": argoApplication("")} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{
				"app/app.yaml": app, "charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "charts/web/templates/s.yaml": randomSecret,
				"cluster/shop.yaml": users,
			}
			r := releasesRequest("app")
			r.Releases.Impure, r.Releases.Derived = v1alpha1.ImpureDerived, &v1alpha1.HelmDerived{Time: "2026-01-01"}
			r.Releases.Lookup, r.Releases.Captured = v1alpha1.LookupCaptured, "cluster/shop.yaml"
			r.DerivedKey, r.ReleasesKey = derivedKey(t, "z"), derivedKey(t, "a")
			first, record := mustRender(t, files, r)
			other := r
			other.DerivedKey = derivedKey(t, "y")
			again, _ := mustRender(t, files, other)
			if first.Digest() != again.Digest() || !strings.Contains(text(first), "user: admin") || !strings.Contains(text(first), "BEGIN CERTIFICATE") {
				t.Errorf("got %s\n%s", text(first), text(again))
			}
			other = r
			other.ReleasesKey = derivedKey(t, "b")
			changed, _ := mustRender(t, files, other)
			if changed.Digest() == first.Digest() || render.Fingerprint(record, &r, "v1") == render.Fingerprint(record, &other, "v1") {
				t.Error("another seed gives the same")
			}
			files["cluster/shop.yaml"] += "# more\n"
			if _, affected := record.Affected(build(t, files)); !affected {
				t.Error("the captured objects were not read")
			}
		})
	}
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
		"time":           {app: app, template: "{{ now }}", change: derivedReleases, want: "say in spec.build.releases.derived.time what the clock shows"},
		"host":           {app: app, template: "{{ getHostByName \"a\" }}", change: derivedReleases, want: "set spec.build.releases.impure to Empty"},
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
			r.ReleasesKey = derivedKey(t, "a")
			if c.change != nil {
				c.change(r.Releases)
			}
			_, _, err := renderFiles(t, files, r)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), " helm.") {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

// derivedReleases has values derived, and no clock.
func derivedReleases(r *v1alpha1.Releases) {
	r.Impure, r.Derived = v1alpha1.ImpureDerived, &v1alpha1.HelmDerived{}
}

// TestDerivedHelmCharts does the same for a chart of a kustomization.
func TestDerivedHelmCharts(t *testing.T) {
	files := map[string]string{
		"app/kustomization.yaml": entry + "  namespace: shop\n  releaseName: one\n", "app/charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"app/charts/web/templates/s.yaml": randomSecret, "cluster/shop.yaml": users,
	}
	r := request("app")
	r.HelmCharts = &v1alpha1.HelmCharts{
		Impure: v1alpha1.ImpureDerived, Derived: &v1alpha1.HelmDerived{Time: "2026-01-01"}, Lookup: v1alpha1.LookupCaptured, Captured: "cluster/shop.yaml",
	}
	r.DerivedKey = derivedKey(t, "a")
	first, _ := mustRender(t, files, r)
	again, _ := mustRender(t, files, r)
	if first.Digest() != again.Digest() || !strings.Contains(text(first), "user: admin") {
		t.Errorf("got %s\n%s", text(first), text(again))
	}
	before := text(first)
	files["app/kustomization.yaml"] = entry + "  namespace: shop\n  releaseName: two\n"
	second, _ := mustRender(t, files, r)
	if strings.ReplaceAll(text(second), "name: two", "name: one") == before {
		t.Error("another release has the same values")
	}
}
