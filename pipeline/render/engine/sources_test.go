// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// renderSources renders apps/web of a tree that has another source at platform.
func renderSources(t *testing.T, own, platform map[string]string) (string, error) {
	t.Helper()
	files, err := tree.Combine(build(t, own), map[string]*tree.Tree{"platform": build(t, platform)}, false)
	if err != nil {
		t.Fatal(err)
	}
	r := request("apps/web")
	r.Sources = []string{"platform"}
	response, err := pool(t, render.Options{}).Render(t.Context(), tree.NewView(files, r.Limits.Read), r)
	if err != nil {
		return "", err
	}
	return text(response), nil
}

// TestSourcesAsKustomize has a kustomization name bases of another source: kustomize gives the same where that is checked out there.
func TestSourcesAsKustomize(t *testing.T) {
	own := map[string]string{
		"apps/web/kustomization.yaml": "resources: [../../platform/bases/web]\ncomponents: [../../platform/components/labels]\nnameSuffix: -prod\n",
	}
	platform := map[string]string{
		"bases/web/kustomization.yaml":         "resources: [../common, web.yaml]\n",
		"bases/web/web.yaml":                   deployment,
		"bases/common/kustomization.yaml":      "resources: [settings.yaml]\n",
		"bases/common/settings.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n",
		"components/labels/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {team: shop}}]\n",
	}
	got, err := renderSources(t, own, platform)
	if err != nil {
		t.Fatal(err)
	}
	whole := map[string]string{}
	for name, content := range own {
		whole[name] = content
	}
	for name, content := range platform {
		whole["platform/"+name] = content
	}
	want, err := realKustomize(t, whole, "apps/web")
	if err != nil {
		t.Fatal(err)
	}
	if got != want || !strings.Contains(got, "settings-prod") {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestSourcesReachNoOthers has kustomizations and links of a mounted source lead to what the pipeline's own source holds.
func TestSourcesReachNoOthers(t *testing.T) {
	own := map[string]string{
		"apps/web/kustomization.yaml": "resources: [../../platform/web]\n", "secret/kustomization.yaml": "resources: [secret.yaml]\n",
		"secret/secret.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: canary}\n",
	}
	const at = "platform/web/kustomization.yaml"
	for name, tc := range map[string]struct {
		platform map[string]string
		want     string
	}{
		"resources":        {map[string]string{"web/kustomization.yaml": "resources:\n- ../../secret\n"}, at + ":2: resources: ../../secret leads out of the source that is mounted at platform"},
		"around":           {map[string]string{"web/kustomization.yaml": "resources: [../../platform/../secret]\n"}, "leads out of the source that is mounted at platform"},
		"components":       {map[string]string{"web/kustomization.yaml": "components: [../../secret]\n"}, "leads out of the source that is mounted at platform"},
		"transformers":     {map[string]string{"web/kustomization.yaml": "transformers: [../../secret]\n"}, "leads out of the source that is mounted at platform"},
		"merged in YAML":   {map[string]string{"web/kustomization.yaml": "<<: {resources: [../../secret]}\n"}, "platform/web/kustomization.yaml"},
		"a file":           {map[string]string{"web/kustomization.yaml": "resources: [../../secret/secret.yaml]\n"}, "leads out of the source that is mounted at platform"},
		"a patch":          {map[string]string{"web/kustomization.yaml": "patches: [{path: ../../secret/secret.yaml}]\n"}, "is not in or below"},
		"a link":           {map[string]string{"web/kustomization.yaml": "resources: [link]\n", "web/link": "->../../secret"}, "leads out of the source tree"},
		"a link to a file": {map[string]string{"web/kustomization.yaml": "resources: [link.yaml]\n", "web/link.yaml": "->../../secret/secret.yaml"}, "leads out of the source tree"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := renderSources(t, own, tc.platform)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if strings.Contains(out, "canary") {
				t.Errorf("it was rendered:\n%s", out)
			}
		})
	}
}
