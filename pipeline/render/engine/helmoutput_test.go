// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
)

const twice = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n  labels:\n    app: first\n    other: x\n    app: last\n"

// TestLastOfRepeatedKeysOfChartsCounts: the chart of somebody else is rendered as Helm and Argo CD do, and the warning names
// chart, template, object and line.
func TestLastOfRepeatedKeysOfChartsCounts(t *testing.T) {
	chart := map[string]string{"apps/shop/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n", "apps/shop/templates/web.yaml": twice}
	const want = "the chart apps/shop: apps/shop/templates/web.yaml: ConfigMap shop/web: the key metadata.labels.app is there more than once in the same mapping; " +
		"the last one, on line 8 of the rendered object, counts, as in Helm and Argo CD"
	releases := map[string]string{
		"app/release.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: argocd}\nspec:\n  project: default\n" +
			"  destination: {namespace: shop, server: https://kubernetes.default.svc}\n  source: {repoURL: https://example.com/r.git, path: apps/shop}\n",
	}
	for name, text := range chart {
		releases[name] = text
	}
	ofReleases := request("app")
	ofReleases.Releases = &v1alpha1.Releases{KubeVersion: "1.33.4"}
	ofReleases.Repositories = []render.Repository{{URL: "https://example.com/r.git", Path: ".", Any: true}}
	for name, tc := range map[string]struct {
		files   map[string]string
		request render.Request
	}{"a chart": {chart, release(nil)}, "a release": {releases, ofReleases}} {
		response, _ := mustRender(t, tc.files, tc.request)
		if len(response.Objects) != 1 || strings.Contains(string(response.Objects[0].YAML), "first") || !strings.Contains(string(response.Objects[0].YAML), "app: last") {
			t.Errorf("%s: got %s", name, text(response))
		}
		if len(response.Warnings) != 1 || response.Warnings[0] != want {
			t.Errorf("%s: got the warnings %q", name, response.Warnings)
		}
	}
	// What people wrote is their mistake.
	_, _, err := renderFiles(t, map[string]string{"web.yaml": twice}, request("."))
	if err == nil || !strings.Contains(err.Error(), "twice in the same mapping") {
		t.Errorf("a file: got %v", err)
	}
}

// TestHooksGiveWayToTemplates: of a hook and a template with one name, the template is the object.
func TestHooksGiveWayToTemplates(t *testing.T) {
	account := func(name, hook string) string {
		return "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + name + ", annotations: {" + hook + "}}\n"
	}
	files := map[string]string{
		"apps/shop/Chart.yaml":           "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
		"apps/shop/templates/a.yaml":     account("job", "helm.sh/hook: pre-install"),
		"apps/shop/templates/b.yaml":     account("job", ""),
		"apps/shop/templates/c.yaml":     account("other", "helm.sh/hook: pre-install"),
		"apps/shop/templates/d.yaml":     account("other", "helm.sh/hook: pre-upgrade"),
		"apps/shop/templates/alone.yaml": account("alone", "helm.sh/hook: pre-install"),
	}
	response, _ := mustRender(t, files, release(nil))
	if got, want := ids(response), "v1 ServiceAccount job\nv1 ServiceAccount alone\nv1 ServiceAccount other"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if strings.Contains(string(response.Objects[0].YAML), "helm.sh/hook") {
		t.Errorf("the hook is there: %s", response.Objects[0].YAML)
	}
	warnings := strings.Join(response.Warnings, "\n")
	for _, want := range []string{
		"the hook apps/shop/templates/a.yaml is left out: the template apps/shop/templates/b.yaml makes ServiceAccount shop/job, too",
		"is left out: the hook apps/shop/templates/", "helm.hooks: Drop leaves out every hook",
	} {
		if !strings.Contains(warnings, want) {
			t.Errorf("%q is missing in %s", want, warnings)
		}
	}
}
