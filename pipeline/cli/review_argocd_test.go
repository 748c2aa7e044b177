// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/review/dryrun"
)

// prunedApplication is an Application with a sync policy and a finalizer, or neither.
func prunedApplication(name, path, policy, finalizers string) string {
	text := argoApplication(name, "path: "+path)
	text = strings.Replace(text, "namespace: argocd}", "namespace: argocd, finalizers: ["+finalizers+"]}", 1)
	return text + "  syncPolicy: {" + policy + "}\n"
}

// TestReviewOfWhatApplicationsDelete: Argo CD prunes only where that is asked for, and an Application whose directory is gone fails.
func TestReviewOfWhatApplicationsDelete(t *testing.T) {
	const automated, cascade = "automated: {prune: true}", "resources-finalizer.argocd.argoproj.io"
	objects := map[string]string{"web/web.yaml": application("web", "app:1"), "web/ns.yaml": namespaceText("shop")}
	with := func(app string) map[string]string {
		return map[string]string{"argocd/web.yaml": app, "web/web.yaml": objects["web/web.yaml"], "web/ns.yaml": objects["web/ns.yaml"]}
	}
	for name, c := range map[string]reviewed{
		"pruned": {
			files: with(prunedApplication("web", "web", automated, "")), change: map[string]string{"web/web.yaml": ""},
			code: 1, wants: []string{"deleted: Deployment shop/web (argocd)", "by Application argocd/web"},
		},
		"not pruned": {
			files: with(prunedApplication("web", "web", "automated: {}", "")), change: map[string]string{"web/ns.yaml": ""},
			code: 1, wants: []string{"left in the cluster: Namespace shop", "no longer in Git, and stays in the cluster: Application argocd/web does not prune it: its syncPolicy.automated has no prune: true",
				"0 deleted, 1 no longer in Git but left in the cluster"}, lacks: []string{"deleted with everything"},
		},
		"synced by hand": {
			files: with(prunedApplication("web", "web", "", "")), change: map[string]string{"web/web.yaml": ""},
			code: 1, wants: []string{"it is synced by hand"}, lacks: []string{"== deleted"},
		},
		"an option of the object": {
			files: map[string]string{"argocd/web.yaml": prunedApplication("web", "web", automated, ""), "web/ns.yaml": namespaceText("shop"),
				"web/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    argocd.argoproj.io/sync-options: Prune=false\n"},
			change: map[string]string{"web/a.yaml": ""},
			code:   1, wants: []string{"its annotation has Prune=false"}, lacks: []string{"== deleted"},
		},
		"an Application with what it deploys": {
			files:  map[string]string{"argocd/web.yaml": prunedApplication("web", "web", automated, cascade), "argocd/b.yaml": argoApplication("b", "path: b"), "b/b.yaml": namespaceText("b"), "web/web.yaml": objects["web/web.yaml"]},
			change: map[string]string{"argocd/web.yaml": "", "web/web.yaml": ""},
			code:   1, wants: []string{"deleted: Deployment shop/web (argocd)", "deleted: Application argocd/web (argocd)"},
		},
		"an Application without a finalizer": {
			files:  map[string]string{"argocd/web.yaml": prunedApplication("web", "web", automated, ""), "argocd/b.yaml": argoApplication("b", "path: b"), "b/b.yaml": namespaceText("b"), "web/web.yaml": objects["web/web.yaml"]},
			change: map[string]string{"argocd/web.yaml": ""},
			code:   1, wants: []string{"left in the cluster: Deployment shop/web (argocd)", "Application argocd/web is deleted, and it has no finalizer"}, lacks: []string{"== added"},
		},
		"the directory of an Application": {
			files: with(prunedApplication("web", "web", automated, "")), change: map[string]string{"web/web.yaml": "", "web/ns.yaml": ""},
			code: 2, wants: []string{"error: argocd: not rendered any more: Application argocd/web: ", "web is no directory in the tree"}, lacks: []string{"== deleted"},
		},
		"a kind that is not known": {
			files:  map[string]string{"argocd/web.yaml": argoApplication("web", "path: web"), "web/ns.yaml": namespaceText("shop"), "web/g.yaml": "apiVersion: user.openshift.io/v1\nkind: Group\nmetadata: {name: team}\nusers: [a]\n"},
			change: map[string]string{"web/g.yaml": "apiVersion: user.openshift.io/v1\nkind: Group\nmetadata: {name: team}\nusers: [b]\n"},
			code:   1, wants: []string{"modified: Group team (argocd)"},
		},
		"an Argo CD that deploys itself": {
			files: map[string]string{
				"argocd/kustomization.yaml": "resources: [root.yaml]\n", "argocd/root.yaml": argoApplication("root", "path: argocd/apps"),
				"argocd/apps/kustomization.yaml": "resources: [argocd.yaml, web.yaml]\n", "argocd/apps/argocd.yaml": argoApplication("argocd", "path: argocd"),
				"argocd/apps/web.yaml": argoApplication("web", "path: web"), "web/web.yaml": application("web", "app:1"),
			},
			change: map[string]string{"web/web.yaml": application("web", "app:2")},
			code:   1, wants: []string{"modified: Deployment shop/web (argocd)", "+        image: app:2", "0 objects added, 1 modified"},
		},
		"the Application's own settings": {
			files:  with(prunedApplication("web", "web", automated, "")),
			change: map[string]string{"argocd/web.yaml": prunedApplication("web", "web", "automated: {prune: false}", "")},
			code:   1, wants: []string{"modified: Application argocd/web (argocd)"},
		},
	} {
		t.Run(name, func(t *testing.T) { c.run(t) })
	}
}

// TestReviewOfAnAppOfAppsChart: the Applications of a chart name a mirror of the repository. What they render is shown once, and what is no
// longer rendered by any of them is no build of its own.
func TestReviewOfAnAppOfAppsChart(t *testing.T) {
	chart := "apiVersion: v2\nname: apps\nversion: 0.0.0\n"
	template := "{{ range .Values.apps }}\n---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: {{ . }}, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}\n" +
		"spec:\n  destination: {namespace: shop}\n  source: {repoURL: {{ $.Values.repo }}, path: {{ . }}}\n{{ end }}\n"
	files := map[string]string{
		"apps/Chart.yaml": chart, "apps/templates/apps.yaml": template,
		"web/web.yaml": application("web", "app:1"), "db/kustomization.yaml": "resources: [db.yaml]\n", "db/db.yaml": application("db", "app:1"),
	}
	t.Run("once", func(t *testing.T) {
		dir, git, write := reviewedRepository(t)
		git("init", "--quiet", "--initial-branch=main")
		git("remote", "add", "upstream", "https://git.example.com/team/shop.git")
		write("apps/values.yaml", "repo: http://gitea.gitea:3000/mirrors/shop\napps: [web, db]\n")
		for name, text := range files {
			write(name, text)
		}
		git("add", "-A")
		git("commit", "--quiet", "-m", "first")
		write("web/web.yaml", application("web", "app:2"))
		write("apps/values.yaml", "repo: http://gitea.gitea:3000/mirrors/shop\napps: [web]\n")
		args := []string{"review", "-C", dir, "--cache", t.TempDir(), "HEAD"}
		code, out, problems := prerig(t, args...)
		for _, want := range []string{"modified: Deployment shop/web (apps)", "deleted: Deployment shop/db (apps)", "deleted: Application argocd/db (apps)", "0 objects added, 1 modified, 2 deleted"} {
			if code != 1 || !strings.Contains(out, want) {
				t.Errorf("exit code %d, without %q\n%s%s", code, want, out, problems)
			}
		}
		if want := "info: taken for this repository, by their names or paths: http://gitea.gitea:3000/mirrors/shop\n"; problems != want {
			t.Errorf("notes: %s", problems)
		}
		code, out, problems = prerig(t, append(args, "-o", "json")...)
		var c dryrun.Comparison
		if err := json.Unmarshal([]byte(out), &c); err != nil || code != 1 || len(c.Notes) != 1 || problems != "" {
			t.Errorf("JSON: exit code %d, %v, notes %q\n%s", code, err, c.Notes, problems)
		}
	})
}

// TestReviewPassesOverApplicationsThatAreLeftOut: beside a kustomization that lists Applications, other files of Applications are not
// deployed.
func TestReviewPassesOverApplicationsThatAreLeftOut(t *testing.T) {
	reviewed{
		files: map[string]string{
			"argocd/kustomization.yaml": "resources: [web.yaml]\n", "argocd/web.yaml": argoApplication("web", "path: web"), "web/web.yaml": application("web", "app:1"),
			"argocd/old/crds.yaml": argoApplication("crds", "path: crds"), "crds/ns.yaml": namespaceText("crds"),
		},
		change: map[string]string{"argocd/old/crds.yaml": ""},
		wants:  []string{"nothing would change", "warning: changed, and in nothing that a cluster applies, as far as the files tell: argocd/old\n"},
		lacks:  []string{"== "},
	}.run(t)
}

// TestReviewNamesDangersInEachFormat: text and Markdown name what a change may break and what stays in the cluster, and so does JSON.
func TestReviewNamesDangersInEachFormat(t *testing.T) {
	files := map[string]string{
		"argocd/web.yaml": argoApplication("web", "path: web"), "web/web.yaml": application("web", "app:1.2"), "web/ns.yaml": namespaceText("shop"),
	}
	change := map[string]string{
		"web/web.yaml": strings.Replace(application("web", "app:2.0"), "[{name: app", "[{securityContext: {privileged: true}, name: app", 1), "web/ns.yaml": "",
	}
	for _, output := range []string{"text", "markdown", "json"} {
		reviewed{files: files, change: change, code: 1, wants: []string{"the container app runs privileged", "another major version of app", "it is synced by hand"}}.run(t, "-o", output)
	}
}

// TestReviewOfADirectoryThatAPluginRenders: the Application does not change, and what it would read is compared as it is written.
func TestReviewOfADirectoryThatAPluginRenders(t *testing.T) {
	reviewed{
		files:  map[string]string{"argocd/web.yaml": argoApplication("web", "path: web, plugin: {name: build}"), "web/kustomization.yaml": "resources: [web.yaml]\n", "web/web.yaml": application("web", "app:1")},
		change: map[string]string{"web/web.yaml": application("web", "app:2")},
		code:   1, wants: []string{"modified: Deployment shop/web in web/web.yaml (not rendered)", "as plugins of Argo CD are programs beside it"}, lacks: []string{"nothing would change"},
	}.run(t)
}
