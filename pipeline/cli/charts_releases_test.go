// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/charttest"
)

// Releases in the source name charts, from the lock to the render: of a repository over HTTP, of a registry, and one that another chart
// makes.
func TestChartsOfReleases(t *testing.T) {
	repository := charttest.New(t)
	repository.Add("web", "1.0.0", webChart(t, "1.0.0"))
	repository.Add("web", "1.1.0", webChart(t, "1.1.0"))
	registry := charttest.Registry(t, nil)
	nested := "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: inner, namespace: argocd}\nspec:\n  destination: {namespace: inner}\n" +
		"  source: {repoURL: \"" + repository.URL + "\", chart: web, targetRevision: 1.0.0}\n"
	charttest.Push(t, registry, "team", "apps", "2.0.0", charttest.Package(t, "apps", "2.0.0", map[string]string{"templates/inner.yaml": nested}))

	build := "    path: app\n    releases: {kubeVersion: 1.33.4, objects: [sources]}\n"
	c := newChartCommands(t, build)
	c.write("source/app/release.yaml", "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: outer, namespace: shop}\nspec:\n  interval: 1m\n"+
		"  chart:\n    spec:\n      chart: web\n      version: ^1.0.0\n      sourceRef: {kind: HelmRepository, name: charts}\n---\n"+
		"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: apps, namespace: argocd}\nspec: {interval: 1m, chartRef: {kind: OCIRepository, name: apps}}\n")
	c.write("source/sources/all.yaml", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: shop}\nspec: {url: \""+repository.URL+"\"}\n---\n"+
		"apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: apps, namespace: argocd}\nspec: {interval: 1m, url: \"oci://"+registry+"/team/apps\", ref: {semver: 2.x}}\n")

	contains(t, c.run(2, "charts", "lock"), "app/release.yaml:8: HelmRelease shop/outer spec.chart.spec.chart: the pipeline does not allow the chart repository "+repository.URL)
	c.write("pipelines/web.yaml", chartPipeline(build+"    chartRepositories: [{url: \""+repository.URL+"\"}, {url: \"oci://"+registry+"/team/*\", insecure: true}]"))
	contains(t, c.run(2, "render"), "app/release.yaml:8: HelmRelease shop/outer spec.chart.spec.chart: the chart web of "+repository.URL+" is not locked")
	contains(t, c.run(0, "charts", "lock"), "2 charts locked", "added    web 1.1.0", "added    apps 2.0.0")
	contains(t, c.run(2, "render"), "Application argocd/inner spec.source.chart: charts.lock.yaml has no chart web 1.0.0 of "+repository.URL)
	contains(t, c.run(0, "charts", "lock"), "3 charts locked", "added    web 1.0.0")
	before := c.lock()
	out := c.run(0, "render")
	contains(t, out, "name: outer-web", "namespace: shop", "version: 1.1.0", "name: inner-web", "namespace: inner", "version: 1.0.0")
	if strings.Contains(out, "HelmRelease") || strings.Contains(out, "kind: Application") {
		t.Errorf("a release is among the objects:\n%s", out)
	}
	c.run(0, "charts", "lock")
	if c.lock() != before {
		t.Errorf("the lock has moved:\n%s", c.lock())
	}
	contains(t, c.run(0, "charts", "verify"), "current  web 1.0.0")
}
