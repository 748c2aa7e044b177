// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestRenderFluxCluster renders a cluster into a directory. A Kustomization that breaks keeps its files there, and the
// others are written; a missing chart lock fails the HelmRelease that needs it alone.
func TestRenderFluxCluster(t *testing.T) {
	source, pipelines, dir := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: prod}\nspec:\n  source: {git: {url: \"https://git.example.com/team/fleet.git\"}}\n"+
		"  build: {flux: {path: clusters/prod}, releases: {kubeVersion: 1.33.4}}\n  publish: [{git: {branch: rendered}}]\n", pipelines, "prod.yaml")
	kustomization := func(name string) string {
		return "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: flux-system}\n" +
			"spec: {interval: 1m, prune: true, path: " + name + ", sourceRef: {kind: GitRepository, name: flux-system}}\n"
	}
	configMap := func(value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {v: " + value + "}\n"
	}
	put(t, kustomization("a")+kustomization("b"), source, "clusters/prod/ks.yaml")
	put(t, configMap("a1"), source, "a/m.yaml")
	put(t, configMap("b1"), source, "b/m.yaml")
	render := func(want int) string {
		t.Helper()
		code, _, stderr := prerig(t, "render", "--to", dir, "--pipelines", pipelines, "--source", source, "--no-cache")
		if code != want {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
		return stderr
	}
	holds := func(unit, value string) {
		t.Helper()
		if got := readFile(t, filepath.Join(dir, "prod/flux-system", unit, "configmap-m.yaml")); !strings.Contains(got, value) {
			t.Errorf("%s: got\n%s", unit, got)
		}
	}
	render(ExitOK)
	holds("a", "a1")
	holds("b", "b1")
	put(t, configMap("a2"), source, "a/m.yaml")
	put(t, "a: [\n", source, "b/m.yaml")
	stderr := render(ExitError)
	for _, want := range []string{"error: prod: not rendered: Kustomization flux-system/b", "clusters/prod/ks.yaml:10: Kustomization flux-system/b spec.path: reading b/m.yaml"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %s in\n%s", want, stderr)
		}
	}
	holds("a", "a2")
	holds("b", "b1")
	put(t, configMap("b3"), source, "b/m.yaml")
	put(t, "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r, namespace: x}\nspec: {interval: 1m, chart: {spec: {chart: c, version: 1.x, sourceRef: {kind: HelmRepository, name: h}}}}\n"+
		"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: h, namespace: x}\nspec: {url: \"https://charts.example.com\"}\n", source, "a/r.yaml")
	stderr = render(ExitError)
	if !strings.Contains(stderr, "a/r.yaml:4: HelmRelease x/r spec.chart.spec.chart: the chart c of https://charts.example.com is not locked, as there is no charts.lock.yaml in the source; run prerig lock") {
		t.Error(stderr)
	}
	holds("a", "a2")
	holds("b", "b3")
}
