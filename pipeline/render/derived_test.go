// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/helmchart/derive"
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
