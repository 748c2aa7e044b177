// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reviewed is a change of a repository and what a review of it has to print.
type reviewed struct {
	files, change map[string]string // a text of "" deletes a file
	rename        [2]string         // a directory, and its new name
	code          int
	wants, lacks  []string // in the output or the notes
}

func (c reviewed) run(t *testing.T, args ...string) string {
	t.Helper()
	dir, git, write := reviewedRepository(t)
	git("init", "--quiet", "--initial-branch=main")
	for name, text := range c.files {
		write(name, text)
	}
	git("add", "-A")
	git("commit", "--quiet", "-m", "first")
	for name, text := range c.change {
		if text == "" {
			must(t, os.Remove(filepath.Join(dir, name)))
			continue
		}
		write(name, text)
	}
	if c.rename[0] != "" {
		must(t, os.Rename(filepath.Join(dir, c.rename[0]), filepath.Join(dir, c.rename[1])))
	}
	code, out, problems := prerig(t, append([]string{"review", "-C", dir, "--cache", t.TempDir(), "HEAD"}, args...)...)
	all := out + problems
	if code != c.code {
		t.Errorf("exit code %d, want %d\n%s", code, c.code, all)
	}
	for _, want := range c.wants {
		if !strings.Contains(all, want) {
			t.Errorf("there is no %q in\n%s", want, all)
		}
	}
	for _, lack := range c.lacks {
		if strings.Contains(all, lack) {
			t.Errorf("there is %q in\n%s", lack, all)
		}
	}
	return all
}

func namespaceText(name string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n"
}

func autoscaler(version string) string {
	return "apiVersion: autoscaling/" + version + "\nkind: HorizontalPodAutoscaler\nmetadata: {name: web, namespace: shop}\n" +
		"spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n"
}

// TestReviewPairsObjectsAsTheClusterDoes: what counts is the object in the cluster, whichever version, directory or build it has.
func TestReviewPairsObjectsAsTheClusterDoes(t *testing.T) {
	for name, c := range map[string]reviewed{
		"another version of a kind": {
			files:  map[string]string{"app/hpa.yaml": autoscaler("v2beta2")},
			change: map[string]string{"app/hpa.yaml": autoscaler("v2")},
			code:   1, wants: []string{"modified: HorizontalPodAutoscaler shop/web (app)"}, lacks: []string{"== deleted", "== added"},
		},
		"a directory with another name": {
			files: map[string]string{
				"old/base/kustomization.yaml": "resources: [ns.yaml, web.yaml]\n", "old/base/ns.yaml": namespaceText("shop"), "old/base/web.yaml": application("web", "app:1"),
				"old/prod/kustomization.yaml": "resources: [../base]\n", "old/dev/kustomization.yaml": "resources: [../base]\nnameSuffix: -dev\n",
			},
			rename: [2]string{"old", "new"},
			wants:  []string{"nothing would change\n"}, lacks: []string{"deleted with everything"},
		},
		"an object that another overlay takes over": {
			files: map[string]string{
				"one/kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "one/a.yaml": namespaceText("a"), "one/b.yaml": namespaceText("b"),
				"two/kustomization.yaml": "resources: [c.yaml]\n", "two/c.yaml": namespaceText("c"),
			},
			change: map[string]string{
				"one/kustomization.yaml": "resources: [a.yaml]\n", "one/b.yaml": "", "two/b.yaml": namespaceText("b"),
				"two/kustomization.yaml": "resources: [b.yaml, c.yaml]\n",
			},
			wants: []string{"moved, which by itself changes nothing in the cluster: 1 object from one to two: Namespace b\n", "nothing would change"},
			lacks: []string{"== "},
		},
		"a base that is only no longer referred to": {
			files: map[string]string{
				"base/a/kustomization.yaml": "resources: [a.yaml]\n", "base/a/a.yaml": namespaceText("a"),
				"base/b/kustomization.yaml": "resources: [b.yaml]\n", "base/b/b.yaml": namespaceText("b"),
				"prod/kustomization.yaml": "resources: [../base/a, ../base/b]\n",
			},
			change: map[string]string{"prod/kustomization.yaml": "resources: [../base/a]\n"},
			code:   1, wants: []string{"deleted: Namespace b (prod)", "1 deleted"}, lacks: []string{"== added"},
		},
		"a generated name": {
			files: map[string]string{
				"app/kustomization.yaml": "resources: [web.yaml]\nconfigMapGenerator: [{name: conf, namespace: shop, files: [a.conf]}]\n", "app/a.conf": "one\ntwo\nthree\n",
				"app/web.yaml": strings.Replace(application("web", "app:1"), "[{name: ", "[{envFrom: [{configMapRef: {name: conf}}], name: ", 1),
			},
			change: map[string]string{"app/a.conf": "one\n2\nthree\n"},
			code:   1, wants: []string{"modified: ConfigMap shop/conf-", "-    two\n+    2\n", "a new name with its content, conf-", "what uses it changes and restarts: Deployment shop/web", "0 objects added, 1 modified, 0 deleted"},
			lacks: []string{"modified: Deployment"},
		},
		"a name that the API server completes": {
			files:  map[string]string{"app/job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: migrate-, namespace: shop}\nspec: {template: {spec: {containers: [{name: a, image: \"a:1\"}]}}}\n", "app/ns.yaml": namespaceText("shop")},
			change: map[string]string{"app/job.yaml": ""},
			code:   1, wants: []string{"deleted: Job shop/migrate-… (app)"},
		},
	} {
		t.Run(name, func(t *testing.T) { c.run(t) })
	}
}

// TestReviewShowsWhatCannotBeRendered: changes of files whose build fails at both ends are shown as they are written, and are no error.
func TestReviewShowsWhatCannotBeRendered(t *testing.T) {
	umbrella := func(version string) string {
		return "apiVersion: v2\nname: umbrella\nversion: 0.0.0\ndependencies: [{name: app, version: " + version + ", repository: \"https://charts.example.com\"}]\n"
	}
	for name, c := range map[string]reviewed{
		"the values of an umbrella chart": {
			files:  map[string]string{"web/Chart.yaml": umbrella("1.0.0"), "web/values.yaml": "app: {tag: v1}\n"},
			change: map[string]string{"web/values.yaml": "app: {tag: v2}\n"},
			code:   1, wants: []string{"modified: web/values.yaml (not rendered)", "+app: {tag: v2}\n", "info: web cannot be rendered, as before: "}, lacks: []string{"nothing would change"},
		},
		"another version of its dependency": {
			files:  map[string]string{"web/Chart.yaml": umbrella("1.0.0")},
			change: map[string]string{"web/Chart.yaml": umbrella("2.0.0")},
			code:   1, wants: []string{"modified: web/Chart.yaml (not rendered)", "as before: "}, lacks: []string{"error:"},
		},
		"objects of an overlay with a missing file": {
			files:  map[string]string{"prod/kustomization.yaml": "resources: [gone.yaml, a.yaml]\n", "prod/a.yaml": namespaceText("a")},
			change: map[string]string{"prod/a.yaml": "", "prod/kustomization.yaml": "resources: [gone.yaml]\n"},
			code:   1, wants: []string{"deleted: Namespace a in prod/a.yaml (not rendered)"},
		},
		"a build that is mended": {
			files:  map[string]string{"prod/kustomization.yaml": "resources: [a.yaml]\n"},
			change: map[string]string{"prod/a.yaml": namespaceText("a")},
			code:   1, wants: []string{"info: prod can be rendered now, and could not before", "what could not be rendered before is not compared"}, lacks: []string{"error:"},
		},
	} {
		t.Run(name, func(t *testing.T) { c.run(t) })
	}
}
