// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

// foreignFiles are what a repository holds beside manifests, each with the line that names it.
var foreignFiles = map[string]struct{ text, line string }{
	"charts/web/Chart.yaml":         {"apiVersion: v2\nname: web\nversion: 1.0.0\n", ""},
	"charts/web/templates/web.yaml": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n", "1 Helm template below charts/web/ was skipped"},
	"Taskfile.yml":                  {"tasks: {}\n", "2 files without apiVersion and kind (Taskfile.yml and charts/web/Chart.yaml) were skipped"},
	"ansible/desktop.yaml":          {"- hosts: all\n  tasks: []\n", "1 file with a list (ansible/desktop.yaml) was skipped"},
	"overlay/kustomization.yaml":    {"resources: []\npatches: [{path: patch.yaml}]\n", "1 kustomization (overlay/kustomization.yaml) was skipped"},
	"overlay/patch.yaml":            {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2}\n", "1 patch or input file of a kustomization (overlay/patch.yaml) was skipped"},
	"fn/input.yaml":                 {resourceListOfAnother, "1 ResourceList (fn/input.yaml) was skipped"},
	"compose.yaml":                  {"services: {web: {image: web}}\n", "1 Docker Compose file (compose.yaml) was skipped"},
	"tsconfig.json":                 {"{\n  // strict\n  \"strict\": true\n}\n", "1 JSON file with comments (tsconfig.json) was skipped"},
}

// TestCommandsAndBuildsSkipTheSameFiles: the root of a repository can be injected and rendered, and both name what they skip.
func TestCommandsAndBuildsSkipTheSameFiles(t *testing.T) {
	web := arrange(t)
	files := map[string]string{"src/web.yaml": web, "pipelines/all.yaml": "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: all}\n" +
		"spec:\n  source: {git: {url: https://example.com/r, ref: {branch: main}}}\n  build: {path: .}\n  publish: [{git: {branch: rendered}}]\n"}
	for name, one := range foreignFiles {
		files["src/"+name] = one.text
	}
	writeFiles(t, files)
	code, stdout, rendered := command(t, "", "render", "--source", "src", "all")
	if code != 0 || strings.Count(stdout, "kind: ") != 2 {
		t.Errorf("render: exit %d\n%s\n%s", code, stdout, rendered)
	}
	t.Chdir("src")
	code, _, injected := command(t, "", "inject", "--diff", ".")
	if code != 0 {
		t.Errorf("inject: exit %d\n%s", code, injected)
	}
	for name, one := range foreignFiles {
		for what, got := range map[string]string{"render": rendered, "inject": injected} {
			if !strings.Contains(got, one.line) {
				t.Errorf("%s does not say of %s %q:\n%s", what, name, one.line, got)
			}
		}
	}
}

// TestBuildsDropNoObject: what seems to be an object is never skipped in a build, as that would delete it from the cluster.
func TestBuildsDropNoObject(t *testing.T) {
	const kind = "kind: ConfigMap\nmetadata: {name: web}\n"
	for name, text := range map[string]string{
		"no apiVersion":    kind,
		"no kind":          "apiVersion: v1\nmetadata: {name: web}\n",
		"a list":           "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: web}\n",
		"a template":       "apiVersion: v1\n" + kind + "data: {{ .Values.data }}\n",
		"a pointer":        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n",
		"no YAML":          "a: [\n",
		"a broken mapping": "apiVersion: v1\n" + kind + "data: {\n",
	} {
		t.Chdir(t.TempDir())
		writeFiles(t, map[string]string{
			"src/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "src/web.yaml": text,
			"pipelines/all.yaml": "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: all}\n" +
				"spec:\n  source: {git: {url: https://example.com/r, ref: {branch: main}}}\n  build: {path: .}\n  publish: [{git: {branch: rendered}}]\n"})
		if code, _, stderr := command(t, "", "render", "--source", "src", "all"); code != 2 || !strings.Contains(stderr, "reading web.yaml") {
			t.Errorf("%s: exit %d\n%s", name, code, stderr)
		}
	}
}
