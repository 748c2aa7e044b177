// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

// clustersSet is an ApplicationSet that asks Argo CD for its clusters, in a matrix with directories.
const clustersSet = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: fleet, namespace: argocd}\nspec:\n  goTemplate: true\n  generators:\n" +
	"  - matrix:\n      generators:\n      - clusters: {selector: {matchLabels: {a: b}}}\n      - git: {repoURL: \"https://git.example.com/team/config\", directories: [{path: \"fleet/*/*\"}]}\n" +
	"  template:\n    metadata: {name: \"{{.name}}\"}\n    spec:\n      source: {repoURL: \"https://git.example.com/team/config\", path: \"fleet/{{.team}}/{{.name}}\"}\n"

// TestReviewOfDirectoriesForUnknownClusters: which clusters get a directory is not known, and what changes in it is.
func TestReviewOfDirectoriesForUnknownClusters(t *testing.T) {
	web := "fleet/a/web/"
	files := func() map[string]string {
		return map[string]string{
			"argocd/set.yaml": clustersSet, "argocd/root.yaml": argoApplication("other", "path: other"), "other/ns.yaml": namespaceText("other"),
			"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": application("web", "app:1"),
			web + "kustomization.yaml": "resources: [../../../base, ns.yaml]\nnamespace: shop\n", web + "ns.yaml": namespaceText("shop"), web + "details.yaml": "team: a\n",
			"fleet/b/db/db.yaml": application("db", "app:1"),
		}
	}
	const claim = "info: ApplicationSet argocd/fleet deploys fleet/a/web; to which clusters and with which settings, only Argo CD knows (generator clusters)\n"
	for name, c := range map[string]reviewed{
		"a directory is deleted": {
			files: files(), change: map[string]string{web + "kustomization.yaml": "", web + "ns.yaml": "", web + "details.yaml": ""},
			code: 1, wants: []string{"deleted: Namespace shop (fleet/a/web)", "deleted with everything", "deleted: Deployment shop/web (fleet/a/web)", claim, "0 modified, 2 deleted",
				"ApplicationSet argocd/fleet", "needs Argo CD's clusters, and none are among the objects"},
			lacks: []string{"not rendered)", "leads to", "spec.build"},
		},
		"a directory is renamed": {
			files: files(), change: map[string]string{web + "kustomization.yaml": "", web + "ns.yaml": "", web + "details.yaml": "",
				"fleet/a/front/kustomization.yaml": files()[web+"kustomization.yaml"], "fleet/a/front/ns.yaml": namespaceText("shop"), "fleet/a/front/details.yaml": "team: a\n"},
			code: 0, wants: []string{"nothing would change"}, lacks: []string{"deleted:", "added:"},
		},
		"a base is moved": {
			files: files(), change: map[string]string{"base/kustomization.yaml": "", "base/web.yaml": "",
				"shared/kustomization.yaml": files()["base/kustomization.yaml"], "shared/web.yaml": files()["base/web.yaml"],
				web + "kustomization.yaml": "resources: [../../../shared, ns.yaml]\nnamespace: shop\n"},
			code: 0, wants: []string{"nothing would change"}, lacks: []string{"deleted:", "added:", "modified:"},
		},
		"an object changes": {
			files: files(), change: map[string]string{"base/web.yaml": application("web", "app:2")},
			code: 1, wants: []string{"modified: Deployment shop/web (fleet/a/web)", claim}, lacks: []string{"not rendered)"},
		},
	} {
		t.Run(name, func(t *testing.T) { c.run(t) })
	}
}

// TestReviewOfFilesThatNothingReads: beside what cannot be rendered, files of other tools, patches and what no kustomization lists are no
// objects that are added or deleted.
func TestReviewOfFilesThatNothingReads(t *testing.T) {
	files := map[string]string{
		"argocd/apps.yaml":       argoApplication("web", "path: web, plugin: {name: build}") + argoApplication("db", "path: db"),
		"web/kustomization.yaml": "resources: [web.yaml]\npatches: [{path: patches/web.yaml}]\n", "web/web.yaml": application("web", "app:1"),
		"web/patches/web.yaml": application("web", "app:3"), "web/dead/crd.yaml": namespaceText("dead"),
		"db/kustomization.yaml": "resources: [db.yaml]\n", "db/db.yaml": application("db", "app:1"), "db/crds.yaml": namespaceText("unlisted"),
		"ansible/play.yaml": "- hosts: all\n  tasks: []\n", "ansible/vars.yaml": "a: b\n",
	}
	reviewed{
		files: files, change: map[string]string{
			"web/web.yaml": application("web", "app:2"), "web/patches/web.yaml": "", "web/kustomization.yaml": "resources: [web.yaml]\n",
			"web/dead/crd.yaml": "", "db/crds.yaml": "", "ansible/play.yaml": "", "ansible/vars.yaml": "",
		},
		code: 1, wants: []string{"modified: Deployment shop/web in web/web.yaml (not rendered)", "by Application argocd/web, which cannot be rendered",
			"warning: changed, and in nothing that was compared: ansible/play.yaml, ansible/vars.yaml, db/crds.yaml and 3 more\n", "0 objects added, 1 modified, 0 deleted"},
		lacks: []string{"deleted:", "ansible/play.yaml (not rendered)"},
	}.run(t)
}

// TestReviewOfDeadDirectories: what nothing led to is in no cluster, so that nothing is deleted with it.
func TestReviewOfDeadDirectories(t *testing.T) {
	reviewed{
		files:  reviewedCluster(map[string]string{"dead/Chart.yaml": "apiVersion: v2\nname: dead\nversion: 1.0.0\n", "dead/templates/ns.yaml": namespaceText("dead")}),
		change: map[string]string{"infrastructure/unused.yaml": "", "dead/Chart.yaml": "", "dead/templates/ns.yaml": "", "apps/settings.yaml": ""},
		code:   1, wants: []string{"deleted: ConfigMap shop/settings", "0 modified, 1 deleted",
			"warning: changed, and in nothing that a cluster applies, as far as the files tell: dead, infrastructure\n"},
		lacks: []string{"deleted: Namespace"},
	}.run(t)
}

// TestReviewOfTheValuesOfAnUnrenderedApplication: the values of a chart that a plugin renders are shown as they are written.
func TestReviewOfTheValuesOfAnUnrenderedApplication(t *testing.T) {
	reviewed{
		files: map[string]string{"argocd/apps.yaml": argoApplication("web", "path: web, plugin: {name: build}"), "web/values.yaml": "a: 1\n",
			"web/kustomization.yaml": "helmCharts: [{name: web, valuesFile: values.yaml}]\n"},
		change: map[string]string{"web/values.yaml": "a: 2\n"},
		code:   1, wants: []string{"modified: web/values.yaml (not rendered)", "by Application argocd/web, which cannot be rendered"},
	}.run(t)
}

// TestReviewOfATemplateForPeople: what cannot be rendered and is deployed by nothing does not fail the review.
func TestReviewOfATemplateForPeople(t *testing.T) {
	reviewed{
		files:  map[string]string{"argocd/web.yaml": argoApplication("web", "path: web"), "web/web.yaml": application("web", "app:1")},
		change: map[string]string{"web/web.yaml": application("web", "app:2"), "docs/template/kustomization.yaml": "resources: [../../../profile]\n"},
		code:   1, wants: []string{"warning: docs/template cannot be rendered, and no Application or Kustomization in the files leads to it: "}, lacks: []string{"error:"},
	}.run(t)
}

// TestReviewOfATemplateForPeopleThatWasBroken: it does not fail the review for another reason than before, either.
func TestReviewOfATemplateForPeopleThatWasBroken(t *testing.T) {
	reviewed{
		files: map[string]string{"argocd/web.yaml": argoApplication("web", "path: web"), "web/web.yaml": application("web", "app:1"),
			"docs/template/kustomization.yaml": "resources: [../../../profile]\n"},
		change: map[string]string{"web/web.yaml": application("web", "app:2"), "docs/template/kustomization.yaml": "resources: [gone.yaml]\n"},
		code:   1, wants: []string{"info: docs/template cannot be rendered, as before: "}, lacks: []string{"error:"},
	}.run(t)
}

// TestReviewHasNoAdviceForPipelines: a review has no pipeline whose fields could be set.
func TestReviewHasNoAdviceForPipelines(t *testing.T) {
	files := map[string]string{"argocd/set.yaml": clustersSet, "argocd/web.yaml": strings.Replace(argoApplication("web", "path: web"), "team/config", "team/far", 1),
		"argocd/own.yaml": argoApplication("own", "path: own"), "own/web.yaml": application("web", "app:1")}
	reviewed{
		files: files, change: map[string]string{"own/web.yaml": application("web", "app:2"), "argocd/web.yaml": files["argocd/web.yaml"] + "  project: a\n"},
		code: 1, wants: []string{"Application argocd/web (argocd)"}, lacks: []string{"spec.build"},
	}.run(t)
}

// TestReviewOfAPathWithUnknownParameters: a directory that a path may mean is not one that the ApplicationSet surely deploys.
func TestReviewOfAPathWithUnknownParameters(t *testing.T) {
	set := func(name, path string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: " + name + ", namespace: argocd}\nspec:\n  goTemplate: true\n" +
			"  generators: [{plugin: {configMapRef: {name: secrets}}}]\n  template:\n    metadata: {name: " + name + "}\n" +
			"    spec:\n      source: {repoURL: \"https://git.example.com/team/config\", path: \"" + path + "\"}\n      destination: {name: in-cluster, namespace: shop}\n"
	}
	files := map[string]string{"argocd/sure.yaml": set("sure", "storage/pvc"), "argocd/maybe.yaml": set("maybe", "storage/{{ .provider }}"),
		"storage/pvc/web.yaml": application("web", "app:1"), "storage/s3/db.yaml": application("db", "app:1")}
	reviewed{
		files: files, change: map[string]string{"storage/pvc/web.yaml": application("web", "app:2")}, code: 1,
		wants: []string{"ApplicationSet argocd/sure deploys storage/pvc; to which clusters",
			"ApplicationSet argocd/maybe may deploy storage/pvc, as its path storage/{{ .provider }} may mean that: only Argo CD knows the parameters (generator plugin)\n"},
		lacks: []string{"argocd/maybe deploys"},
	}.run(t)
}
