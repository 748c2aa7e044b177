// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package discover_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/prerig/prerig/pipeline/build/discover"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// TestBuildsThatAChangeCannotAffect: a build is untouched only if none of what a kustomization may read differs.
func TestBuildsThatAChangeCannotAffect(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	files := map[string]string{
		"app/kustomization.yaml": "resources: [../base]\ncomponents: [../parts/tls]\nconfigMapGenerator: [{name: c, files: [key=settings/a.txt], envs: [a.env]}]\n" +
			"patches: [{path: patch.yaml}]\ntransformers: [transform.yaml]\nhelmCharts: [{name: web, valuesFile: values.yaml}]\n",
		"app/transform.yaml":           "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: far/patch.yaml\n",
		"base/kustomization.yaml":      "resources: [cm.yaml]\n",
		"base/cm.yaml":                 object,
		"parts/tls/kustomization.yaml": "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\npatches: [{path: tls.yaml}]\n",
		"plain/deep/cm.yaml":           object,
		"chart/Chart.yaml":             "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
	}
	build := func(more map[string]string) *tree.Tree {
		b := tree.NewBuilder(tree.Limits{})
		all := maps.Clone(files)
		maps.Copy(all, more)
		for name, text := range all {
			if err := b.Add(name, tree.File, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		return b.Build()
	}
	before := build(nil)
	for changed, want := range map[string][]string{
		"app/settings/a.txt": {"app"}, "app/a.env": {"app"}, "app/patch.yaml": {"app"}, "app/far/patch.yaml": {"app"}, "app/values.yaml": {"app"},
		"app/charts/web/values.yaml": {"app"}, "parts/tls/tls.yaml": {"app"}, "base/cm.yaml": {"app"}, "app/kustomization.yaml": {"app"},
		"app/readme.md": nil, "parts/tls/other.md": {"app"}, // charts may be in any directory that is named
		"plain/deep/cm.yaml": {"plain/deep"}, "chart/templates/web.yaml": {"chart"},
		"charts.lock.yaml": {"app", "chart", "plain/deep"},
	} {
		after := build(map[string]string{changed: files[changed] + "# changed\n"})
		paths, err := tree.ChangedFiles(before, after)
		if err != nil {
			t.Fatal(err)
		}
		_, builds, err := discover.BothEnds(tree.NewView(before, tree.Limits{}), tree.NewView(after, tree.Limits{}), paths, discover.Options{KubeVersion: "1.34.0"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range builds {
			if !one.Untouched {
				got = append(got, one.Path)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q may change, want %q", changed, got, want)
		}
	}
}
