// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package discover_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/build/discover"
	"github.com/prerig/prerig/pipeline/source/tree"
)

const (
	deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
	chart      = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
)

// found returns the builds of files, a line each: kind, path and name, and the policy if there is one.
func found(t *testing.T, files map[string]string) (lines []string, builds []discover.Build) {
	t.Helper()
	b := tree.NewBuilder(tree.Limits{})
	for name, text := range files {
		if err := b.Add(name, tree.File, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	builds, err := discover.Builds(tree.NewView(b.Build(), tree.Limits{}), discover.Options{KubeVersion: "1.36.0", PolicyName: "prerig.yaml", URLs: []string{"https://git.example.com/apps.git"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range builds {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", one.Kind, one.Path, one.Name, one.Policy)))
	}
	return lines, builds
}

func TestBuildsOfARepository(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"overlays, not their bases and components": {map[string]string{
			"base/kustomization.yaml": "resources: [web.yaml]", "base/web.yaml": deployment,
			"parts/kustomization.yaml":         "kind: Component",
			"overlays/eu/kustomization.yaml":   "resources: [../../base]\ncomponents: [../../parts]",
			"overlays/us/Kustomization":        "bases: [../../base]",
			"overlays/us/patches/replica.yaml": deployment,
		}, []string{"kustomization overlays/eu overlays-eu", "kustomization overlays/us overlays-us"}},
		"charts, not libraries and what is in them": {map[string]string{
			"charts/web/Chart.yaml": chart, "charts/web/templates/web.yaml": deployment, "charts/web/charts/sub/Chart.yaml": chart,
			"charts/lib/Chart.yaml": chart + "type: library\n",
		}, []string{"chart charts/web charts-web"}},
		"the topmost directory of manifests": {map[string]string{
			"k8s/web.yaml": deployment, "k8s/more/db.yaml": deployment, "docs/notes.yaml": "a: b\n", "skaffold.yaml": "apiVersion: skaffold/v4\nkind: Config\n",
			".github/workflows/ci.yaml": deployment, "node_modules/x/y.yaml": deployment,
		}, []string{"manifests k8s k8s"}},
		"the root": {map[string]string{"web.yaml": deployment, "sub/db.yaml": deployment}, []string{"manifests . repository"}},
		"the nearest policy": {map[string]string{
			"prerig.yaml": "a: b\n", "a/web.yaml": deployment, "b/prerig.yaml": "a: b\n", "b/web.yaml": deployment,
		}, []string{"manifests a a prerig.yaml", "manifests b b b/prerig.yaml"}},
		"what Applications render": {map[string]string{
			"apps/web.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\n" +
				"spec: {source: {repoURL: https://git.example.com/apps.git, path: overlays/eu}}\n",
			"apps/set.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all}\n" +
				"spec: {template: {spec: {source: {path: 'teams/{{.name}}/deploy'}}}}\n",
			"overlays/eu/kustomization.yaml": "resources: [web.yaml]", "overlays/eu/web.yaml": deployment,
			"teams/a/deploy/web.yaml": deployment, "other/web.yaml": deployment,
		}, []string{"manifests apps apps", "manifests other other"}},
		"clusters of Flux, and what is beside them": {map[string]string{
			"clusters/prod/flux-system/gotk-sync.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system, namespace: flux-system}\n" +
				"spec: {path: ./clusters/prod, sourceRef: {kind: GitRepository, name: flux-system}}\n",
			"clusters/prod/flux-system/kustomization.yaml": "resources: [gotk-sync.yaml]",
			"clusters/prod/apps.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\n" +
				"spec: {path: ./apps/prod, sourceRef: {kind: GitRepository, name: flux-system}}\n",
			"apps/prod/kustomization.yaml": "resources: [web.yaml]", "apps/prod/web.yaml": deployment, "apps/prod/more/db.yaml": deployment,
			"other/web.yaml": deployment,
		}, []string{"Flux cluster clusters/prod clusters-prod", "manifests other other"}},
		"names that would be the same": {map[string]string{"a/b/w.yaml": deployment, "a-b/w.yaml": deployment},
			[]string{"manifests a-b a-b", "manifests a/b a-b-2"}},
		"nothing": {map[string]string{"README.md": "hello", "broken.yaml": "a: [\n"}, nil},
	} {
		if got, _ := found(t, c.files); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestSourcesOfHelmReleases: only the directories are read with it that have the sources of the build's own releases, so that another
// team's change does not concern it.
func TestSourcesOfHelmReleases(t *testing.T) {
	release := func(repository string) string {
		return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web}\n" +
			"spec: {chart: {spec: {chart: web, sourceRef: {kind: HelmRepository, name: " + repository + "}}}}\n"
	}
	repository := func(name string) string {
		return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: " + name + "}\nspec: {url: https://charts.example.com}\n"
	}
	_, builds := found(t, map[string]string{
		"base/kustomization.yaml": "resources: [web.yaml]", "base/web.yaml": release("one"),
		"prod/kustomization.yaml": "resources: [../base]",
		"repos/one/one.yaml":      repository("one"), "repos/two/two.yaml": repository("two"),
	})
	for _, b := range builds {
		if b.Path == "prod" && !slices.Equal(b.Spec.Releases.Objects, []string{"repos/one"}) {
			t.Errorf("prod reads %v", b.Spec.Releases.Objects)
		}
	}
}
