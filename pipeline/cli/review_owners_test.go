// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os/exec"
	"strings"
	"testing"
)

// replacedSet is an ApplicationSet that makes Applications with a prefix, for each directory of apps.
func replacedSet(prefix, policy, finalizers string) string {
	return "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all, namespace: argocd}\nspec:\n" + policy +
		"  generators: [{git: {repoURL: \"https://git.example.com/team/config\", directories: [{path: \"apps/*\"}]}}]\n  template:\n" +
		"    metadata: {name: \"" + prefix + "-{{path.basename}}\"" + finalizers + "}\n    spec:\n" +
		"      source: {repoURL: \"https://git.example.com/team/config\", path: \"{{path}}\"}\n      destination: {name: in-cluster, namespace: shop}\n"
}

// TestReviewOfReplacedApplications: Argo CD deletes what an Application with a finalizer has deployed, also if another one deploys the same.
func TestReviewOfReplacedApplications(t *testing.T) {
	const finalizer = ", finalizers: [resources-finalizer.argocd.argoproj.io]"
	const danger = "danger: Application argocd/a-web is deleted with a finalizer, and Application argocd/b-web is in its place: Argo CD deletes 1 object, and creates it again at the next sync by hand"
	byHand := func(name, policy, finalizers string) string {
		return prunedApplication(name, "apps/web", policy, finalizers)
	}
	for name, c := range map[string]struct {
		from, to     string
		wants, lacks []string
	}{
		"by the template": {replacedSet("a", "", ""), replacedSet("b", "", ""), []string{danger, "Deployment shop/web"}, []string{"moved, which"}},
		"preserved": {replacedSet("a", "  syncPolicy: {preserveResourcesOnDeletion: true}\n", ""), replacedSet("b", "  syncPolicy: {preserveResourcesOnDeletion: true}\n", ""),
			[]string{"moved, which by itself changes nothing"}, []string{"danger:"}},
		"preserved, with a finalizer in the template": {replacedSet("a", "  syncPolicy: {preserveResourcesOnDeletion: true}\n", finalizer),
			replacedSet("b", "  syncPolicy: {preserveResourcesOnDeletion: true}\n", finalizer), []string{danger}, nil},
		"by hand": {byHand("a-web", "automated: {}", "resources-finalizer.argocd.argoproj.io"), byHand("b-web", "automated: {}", ""),
			[]string{strings.TrimSuffix(danger, " at the next sync by hand") + ", unless the new one takes it over first: Deployment shop/web (argocd)"}, []string{"moved, which"}},
		"by hand, without a finalizer": {byHand("a-web", "", ""), byHand("b-web", "", ""), []string{"moved, which by itself changes nothing"}, []string{"danger: Application"}},
		"by a set that asks for clusters": {strings.Replace(clustersSet, "{{.name}}\"}\n", "a-{{.name}}\"}\n", 1), strings.Replace(clustersSet, "{{.name}}\"}\n", "b-{{.name}}\"}\n", 1),
			[]string{"danger: ApplicationSet argocd/fleet names its Applications in another way (a-{{.name}} -> b-{{.name}}): Argo CD deletes those with the former names; what they have deployed goes with them"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"argocd/all.yaml": c.from, "argocd/own.yaml": argoApplication("own", "path: own"), "own/ns.yaml": namespaceText("own"), "apps/web/web.yaml": application("web", "app:1")}
			reviewed{files: files, change: map[string]string{"argocd/all.yaml": c.to}, code: 1, wants: c.wants, lacks: c.lacks}.run(t)
		})
	}
}

// TestReviewOfDeletedOwners: what a controller has applied goes with its object, also if it is not rendered.
func TestReviewOfDeletedOwners(t *testing.T) {
	foreign := strings.ReplaceAll(reviewedPart("crds", "./config/crd", "prune: true"), "name: flux-system}", "name: gateway}") +
		"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: gateway, namespace: flux-system}\nspec: {interval: 1m, url: \"https://git.example.com/other/gateway\"}\n"
	helm := "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: db, namespace: shop}\nspec: {interval: 1h, chartRef: {kind: OCIRepository, name: far}}\n"
	reviewed{
		files:  reviewedCluster(map[string]string{"clusters/prod/crds.yaml": foreign, "apps/db.yaml": helm}),
		change: map[string]string{"clusters/prod/crds.yaml": "", "apps/db.yaml": ""},
		code:   1, wants: []string{"danger: a Kustomization that prunes is deleted: what it has applied goes with it", "danger: a HelmRelease is deleted: its release is uninstalled"},
	}.run(t)
}

// TestReviewBelowASuspendedKustomization: a change waits until it is resumed.
func TestReviewBelowASuspendedKustomization(t *testing.T) {
	reviewed{
		files:  reviewedCluster(map[string]string{"clusters/prod/apps.yaml": reviewedPart("apps", "./apps", "prune: true\n  suspend: true")}),
		change: map[string]string{"apps/web.yaml": application("web", "app:2")},
		code:   1, wants: []string{"modified: Deployment shop/web", "Kustomization flux-system/apps is suspended: nothing of this reaches the cluster until it is resumed"},
	}.run(t)
}

// TestReviewOfAShallowClone: a clone of CI has what to compare with, or the message names how to fetch it.
func TestReviewOfAShallowClone(t *testing.T) {
	dir, git, write := reviewedRepository(t)
	git("init", "--quiet", "--initial-branch=main")
	for i, image := range []string{"app:1", "app:2", "app:3"} {
		write("web/web.yaml", application("web", image))
		git("add", "-A")
		git("commit", "--quiet", "-m", "commit")
		if i == 1 {
			git("switch", "--quiet", "-c", "feature")
		}
	}
	git("switch", "--quiet", "main")
	write("web/ns.yaml", namespaceText("shop"))
	git("add", "-A")
	git("commit", "--quiet", "-m", "main")
	for depth, want := range map[string]string{"1": "fetch it with git fetch --unshallow (actions/checkout: fetch-depth: 0; GitLab: GIT_DEPTH: 0)", "2": "+        image: app:3"} {
		clone := t.TempDir()
		if out, err := exec.Command("git", "clone", "--quiet", "--no-single-branch", "--branch", "feature", "--depth", depth, "file://"+dir, clone).CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
		_, out, problems := prerig(t, "review", "-C", clone, "--cache", t.TempDir())
		if !strings.Contains(out+problems, want) {
			t.Errorf("depth %s:\n%s%s", depth, out, problems)
		}
	}
}
