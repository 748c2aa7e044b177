// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

// reviewChange commits files, changes them, and returns what a review of the change prints.
func reviewChange(t *testing.T, want int, files, change map[string]string) (out, problems string) {
	t.Helper()
	dir, git, write := reviewedRepository(t)
	git("init", "--quiet", "--initial-branch=main")
	for name, text := range files {
		write(name, text)
	}
	git("add", "-A")
	git("commit", "--quiet", "-m", "first")
	for name, text := range change {
		if text == "" {
			git("rm", "--quiet", name)
			continue
		}
		write(name, text)
	}
	code, out, problems := prerig(t, "review", "-C", dir, "--cache", t.TempDir(), "HEAD")
	if code != want {
		t.Fatalf("exit code %d, want %d\n%s%s", code, want, out, problems)
	}
	return out, problems
}

func argoApplication(name, more string) string {
	return "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + name + ", namespace: argocd}\n" +
		"spec:\n  destination: {name: in-cluster, namespace: shop}\n  source: {repoURL: \"https://git.example.com/team/config\", " + more + "}\n"
}

// TestReviewOfApplications reviews an app of apps whose first Application is beside a kustomization. One chart has no lock: its Application
// is compared as an object, and the others by what they deploy.
func TestReviewOfApplications(t *testing.T) {
	files := map[string]string{
		"argocd/kustomization.yaml": "resources: [ns.yaml]\n", "argocd/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: argocd}\n",
		"argocd/root.yaml": argoApplication("root", "path: argocd/apps"),
		"argocd/apps/all.yaml": argoApplication("web", "path: web") + "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: mesh, namespace: argocd}\n" +
			"spec:\n  destination: {name: other, namespace: mesh}\n  source: {repoURL: \"https://charts.example.com\", chart: mesh, targetRevision: 1.0.0}\n",
		"web/web.yaml": application("web", "app:1"),
	}
	change := map[string]string{
		"web/web.yaml":         application("web", "app:2"),
		"argocd/apps/all.yaml": strings.Replace(files["argocd/apps/all.yaml"], "1.0.0", "1.1.0", 1),
	}
	out, problems := reviewChange(t, 1, files, change)
	for _, want := range []string{"+        image: app:2\n", "1.1.0", "0 objects added, 2 modified, 0 deleted"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if !strings.HasPrefix(problems, "info: taken for this repository, by their names or paths: https://git.example.com/team/config\n"+
		"warning: 1 release compared as objects, not by what they install, ") || strings.Count(problems, "\n") != 2 {
		t.Error(problems)
	}
}

// TestReviewKeepsVariables reviews a Kustomization of Flux that depends on a Secret of the cluster.
func TestReviewKeepsVariables(t *testing.T) {
	kustomization := "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\n" +
		"spec:\n  path: ./apps\n  sourceRef: {kind: GitRepository, name: flux-system}\n  postBuild: {substituteFrom: [{kind: Secret, name: cluster}]}\n"
	files := map[string]string{
		"clusters/prod/apps.yaml": kustomization, "apps/web.yaml": application("web", "app:1"),
		"apps/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hosts}\ndata: {host: \"${DOMAIN}\"}\n",
	}
	out, problems := reviewChange(t, 1, files, map[string]string{"apps/web.yaml": application("web", "app:2")})
	if !strings.Contains(out, "+        image: app:2\n") || problems != "info: compared as text, as only the cluster or a key has the values: the variables DOMAIN\n" {
		t.Errorf("%s%s", out, problems)
	}
}
