// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package discover_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build/discover"
	"github.com/prerig/prerig/pipeline/source/tree"
)

const (
	deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
	chart      = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
)

// application is an Application of a directory.
func application(path string) string {
	return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec: {source: {repoURL: https://git.example.com/apps.git, path: " + path + "}}\n"
}

// found returns the builds of files, a line each: kind, path and name, and the policy if there is one.
func found(t *testing.T, files map[string]string) (lines []string, builds []discover.Build) {
	t.Helper()
	b := tree.NewBuilder(tree.Limits{})
	for name, text := range files {
		if err := b.Add(name, tree.File, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	builds, err := discover.Builds(tree.NewView(b.Build(), tree.Limits{}), discover.Options{
		KubeVersion: "1.36.0", PolicyName: "prerig.yaml", URLs: []string{"https://git.example.com/apps.git"},
	})
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
		"the root": {map[string]string{"web.yaml": deployment, "sub/db.yaml": deployment}, []string{"manifests . apps"}},
		"manifests beside charts": {map[string]string{"web.yaml": deployment, "sub/db.yaml": deployment, "charts/web/Chart.yaml": chart},
			[]string{"chart charts/web charts-web", "manifests sub sub", "manifests web.yaml web-yaml"}},
		"files of tools": {map[string]string{
			"skaffold.yaml":     "apiVersion: skaffold/v4\nkind: Config\nmetadata: {name: x}\n",
			"pipelines/eu.yaml": "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: eu}\n",
		}, nil},
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
		"an ApplicationSet with variables alone in its path": {map[string]string{
			"argo/sets/set.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all}\n" +
				"spec: {template: {spec: {source: {path: '{{values.root}}/{{values.environment}}'}}}}\n",
			"argo/prod/kustomization.yaml": "resources: [../sets/set.yaml]",
		}, []string{"kustomization argo/prod argo-prod"}},
		"clusters of Flux, and what is beside them": {map[string]string{
			"clusters/prod/flux-system/gotk-sync.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system, namespace: flux-system}\n" +
				"spec: {path: ./clusters/prod, sourceRef: {kind: GitRepository, name: flux-system}}\n",
			"clusters/prod/flux-system/kustomization.yaml": "resources: [gotk-sync.yaml]",
			"clusters/prod/apps.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\n" +
				"spec: {path: ./apps/prod, sourceRef: {kind: GitRepository, name: flux-system}}\n",
			"apps/prod/kustomization.yaml": "resources: [web.yaml]", "apps/prod/web.yaml": deployment, "apps/prod/more/db.yaml": deployment,
			"other/web.yaml": deployment,
		}, []string{"Flux cluster clusters/prod clusters-prod", "manifests other other"}},
		"clusters of Flux below the kustomizations that set their namespaces": {map[string]string{
			"apps/shop/kustomization.yaml": "namespace: shop\nresources: [web]", "apps/shop/web/kustomization.yaml": "resources: [ks.yaml]",
			"apps/shop/web/ks.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web}\n" +
				"spec: {path: ./apps/shop/web/app, sourceRef: {kind: GitRepository, name: flux-system}}\n",
			"apps/shop/web/app/web.yaml": deployment,
		}, []string{"Flux cluster apps/shop apps-shop"}},
		"the cluster of a FluxInstance, in the artifact of a directory": {map[string]string{
			"kubernetes/flux/values.yaml": "instance:\n  sync: {kind: OCIRepository, url: \"oci://example.com/all\", path: ./clusters/prod}\n",
			"kubernetes/clusters/prod/apps.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\n" +
				"spec: {path: ./apps, sourceRef: {kind: OCIRepository, name: flux-system}}\n",
			"kubernetes/apps/web.yaml": deployment,
		}, []string{"Flux cluster kubernetes/clusters/prod kubernetes-clusters-prod"}},
		"the artifacts of a generator": {map[string]string{
			"clusters/prod/apps.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\n" +
				"spec: {path: ./prod, sourceRef: {kind: ExternalArtifact, name: apps}}\n",
			"clusters/prod/generator.yaml": "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: all, namespace: flux-system}\n" +
				"spec:\n  sources: [{alias: repo, kind: GitRepository, name: flux-system}]\n  artifacts:\n  - name: apps\n    copy:\n" +
				"    - {from: \"@repo/shared/**\", to: \"@artifact/base/\"}\n    - {from: \"@repo/apps/prod/**\", to: \"@artifact/prod/\"}\n",
			"shared/kustomization.yaml": "resources: [web.yaml]", "shared/web.yaml": deployment, "apps/prod/kustomization.yaml": "resources: [../base]",
			"prod/web.yaml": deployment,
		}, []string{"Flux cluster clusters/prod clusters-prod", "manifests prod prod"}},
		"an app of apps, whose first Application no kustomization lists": {map[string]string{
			"argocd/root.yaml": application("argocd/apps"), "argocd/kustomization.yaml": "resources: [web.yaml]", "argocd/web.yaml": deployment,
			"argocd/apps/web.yaml": application("web"), "web/web.yaml": deployment,
		}, []string{"kustomization argocd argocd", "manifests argocd/root.yaml argocd-root-yaml"}},
		"an app of apps, beside the directories that it renders": {map[string]string{
			"argocd/root.yaml": application("argocd/sets"), "argocd/sets/all.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all}\n" +
				"spec:\n  generators: [{git: {files: [{path: 'apps/*/*/app.yaml'}]}}]\n  template: {spec: {source: {path: '{{.path.path}}'}}}\n",
			"apps/team/web/app.yaml": "a: b\n", "apps/team/web/web.yaml": deployment, "other/web.yaml": deployment,
		}, []string{"manifests argocd/root.yaml argocd-root-yaml", "manifests other other"}},
		"Applications that render the directories of each other": {map[string]string{
			"a/all.yaml": application("b"), "b/all.yaml": application("a"), "a/kustomization.yaml": "resources: [all.yaml]", "b/kustomization.yaml": "resources: [all.yaml]",
		}, []string{"kustomization a a"}},
		"Applications of another repository that has the same path": {map[string]string{
			"apps/web.yaml":   application("web"),
			"apps/other.yaml": strings.ReplaceAll(application("db"), "apps.git", "other.git"),
			"web/web.yaml":    deployment, "db/db.yaml": deployment,
		}, []string{"manifests apps apps", "manifests db db"}},
		"a chart that makes the Applications": {map[string]string{
			"root/Chart.yaml": chart, "root/templates/web.yaml": "kind: Application\nspec:\n  source:\n    path: apps/{{ .Values.env }}/web\n",
			"apps/prod/web/web.yaml": deployment,
		}, []string{"chart root root"}},
		"manifests above other builds": {map[string]string{
			"job.yaml": deployment, "chart/Chart.yaml": chart, "k8s/web.yaml": deployment,
		}, []string{"chart chart chart", "manifests job.yaml job-yaml", "manifests k8s k8s"}},
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

// TestSpellingsOfARepository: the repository is mapped once, however Applications spell its URL.
func TestSpellingsOfARepository(t *testing.T) {
	_, builds := found(t, map[string]string{
		"apps/a.yaml": strings.ReplaceAll(application("web"), "https://git.example.com/apps.git", "git@git.example.com:apps"),
		"apps/b.yaml": strings.ReplaceAll(application("web"), "apps.git", "apps"), "web/web.yaml": deployment,
		"apps/c.yaml": strings.ReplaceAll(application("web"), "https://git.example.com/apps.git", "$REPOSITORY"),
	})
	want := []v1alpha1.ReleaseRepository{{URL: "https://git.example.com/apps.git", Path: "."}}
	if len(builds) != 1 || !slices.Equal(builds[0].Spec.Releases.Repositories, want) {
		t.Errorf("%+v", builds)
	}
}

// TestReleaseNamesOfCharts: the directory of a chart may have a name that no release can have.
func TestReleaseNamesOfCharts(t *testing.T) {
	_, builds := found(t, map[string]string{"Web_App/Chart.yaml": chart})
	if got := builds[0].Spec.Helm.ReleaseName; got != "web-app" {
		t.Errorf("the release is named %q", got)
	}
}

// TestSubmodulesAreLeftOut: the files of a submodule are those of another repository.
func TestSubmodulesAreLeftOut(t *testing.T) {
	b := tree.NewBuilder(tree.Limits{})
	if err := b.Add("web/web.yaml", tree.File, []byte(deployment)); err != nil {
		t.Fatal(err)
	}
	builds, err := discover.Builds(withSubmodule{tree.NewView(b.Build(), tree.Limits{})}, discover.Options{})
	if err != nil || len(builds) != 1 {
		t.Errorf("%v, %v", builds, err)
	}
}

// withSubmodule is a tree with a submodule at module.
type withSubmodule struct{ tree.Reader }

// List implements tree.Reader.
func (r withSubmodule) List(dir string) ([]tree.Info, error) {
	if dir == "module" {
		return nil, fmt.Errorf("reading %s: %w", dir, tree.ErrSubmodule)
	}
	list, err := r.Reader.List(dir)
	if dir == "." {
		list = append(list, tree.Info{Path: "module", Dir: true})
	}
	return list, err
}
