// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"testing"
)

// overlayOf is an overlay of a base with the Deployment web of initWeb.
func overlayOf(text string) map[string]string {
	return map[string]string{
		"src/base/kustomization.yaml": "resources: [web.yaml]\n", "src/base/web.yaml": initWeb,
		"src/ov/kustomization.yaml": text, "src/docs/README.md": "# Docs\n",
		"pl/p.yaml": strings.Replace(wrongPipeline("", ""), "path: k8s", "path: ov", 1),
	}
}

// TestKustomizeErrorsNameFileLineAndField: an error of kustomize is in the words of its user, at the line that is wrong.
func TestKustomizeErrorsNameFileLineAndField(t *testing.T) {
	const base = "resources: [../base]\n"
	const patches = base + "patches:\n- target: {kind: Deployment, name: web}\n  path: patch.yaml\n"
	for _, c := range []struct{ text, patch, want string }{
		{base + "images:\n- name: nginx\n  newTag: 1.10\n", "", "ov/kustomization.yaml:4: images[0].newTag: must be a string, is 1.1; put it in quotes"},
		{"namespace: 123\n" + base, "", "ov/kustomization.yaml:1: namespace: must be a string, is 123; put it in quotes"},
		{"resources: ../base\n", "", "ov/kustomization.yaml:1: resources: must be a list, is the text \"../base\""},
		{base + "images:\n- name: a\n  nwTag: a\n", "", "ov/kustomization.yaml:4: images[0].nwTag: unknown field, did you mean newTag?"},
		{base + "commonLabels:\n  a: 1\n", "", "ov/kustomization.yaml:3: commonLabels.a: must be a string, is 1; put it in quotes"},
		{base + "patches:\n- path: patch.yaml\n", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: wbe, namespace: shop}\n",
			"ov/patch.yaml:1: the patch is of Deployment wbe, which is not among the resources, did you mean web?"},
		{patches, "- op: replce\n  path: /spec/replicas\n", "ov/patch.yaml:1: operation 0: op: must be one of add, remove, replace, move, copy, test, is \"replce\", did you mean replace?"},
		{patches, "- {op: test, path: /kind, value: Deployment}\n- {op: remove, path: /spec/a/b}\n", "ov/patch.yaml:2: operation 1: the object that it changes has no /spec/a/b"},
		{patches, "- {op: remove, path: /spec/strategy}\n", "ov/patch.yaml:1: operation 0: the object that it changes has no /spec/strategy; remove the operation"},
		{"resources: [../base, ../ov]\n", "", "ov/kustomization.yaml:1: resources[1]: ../ov is this directory itself: a cycle; remove the entry"},
		{"resources:\n- ../base\n- ../base\n", "", "ov/kustomization.yaml:3: resources[1]: ../base is listed twice, first in line 2"},
		{"resources: [../base, patch.yaml]\n", initWeb, "ov/patch.yaml:1: the Deployment web is in another resource already; remove one of the two"},
		{"resources: [../base, patch.yaml]\n", "kind: Service\nmetadata: {name: a}\n", "ov/patch.yaml:1: the Service a has no apiVersion"},
		{"resources: [../base, patch.yaml]\n", "apiVersion: v1\nkind: Service\nspec: {ports: {4\n", "building ov: ov/patch.yaml: line "},
		{"resources: [../base, patch.yaml]\n", "<<<<<<< HEAD\na: b\n", "ov/patch.yaml: line 1: <<<<<<< HEAD is a marker of a conflict of Git; resolve the conflict"},
		{base + "replicas:\n- name: wbe\n  count: 3\n", "", "ov/kustomization.yaml:3: replicas[0].name: there is no Deployment, StatefulSet or ReplicaSet wbe among the resources, did you mean web?"},
		{base + "configMapGenerator:\n- name: a\n  files: [app.conf]\n", "", "ov/kustomization.yaml:4: configMapGenerator[0].files[0]: app.conf: no such file"},
		{base + "configMapGenerator:\n- name: a\n  literals: [app]\n", "", "configMapGenerator[0].literals[0]: must be KEY=VALUE, is \"app\""},
		{base + "configMapGenerator:\n- {name: a, behavior: merge, literals: [b=c]}\n", "",
			"ov/kustomization.yaml:3: configMapGenerator[0].behavior: there is no ConfigMap a among the resources to merge; add it to resources, or write behavior: create"},
		{base + "replacements:\n- source: {kind: Deployment, name: web, fieldPath: spec.replcas}\n  targets: [{select: {kind: Deployment}, fieldPaths: [metadata.annotations.x]}]\n", "",
			"ov/kustomization.yaml:3: replacements[0].source.fieldPath: Deployment web has no field spec.replcas; correct the path"},
		{base + "components: [../base]\n", "", "ov/kustomization.yaml:2: components[0]: ../base is a Kustomization and not a Component; name it in resources"},
		{"kind: Kustomisation\n" + base, "", "ov/kustomization.yaml:1: kind: must be Kustomization or Component, is \"Kustomisation\", did you mean Kustomization?"},
		{base + "replacements:\n- source: {kind: Deployment, name: wbe}\n  targets: [{select: {kind: Deployment}, fieldPaths: [spec.replicas]}]\n", "",
			"ov/kustomization.yaml:3: replacements[0].source: there is no Deployment wbe among the resources, did you mean web?"},
		{base + "patches:\n- patch: foo\n  target: {kind: Deployment}\n", "", "patches[0]: it is \"foo\"; a patch is an object with the changed fields, or a list of operations"},
		{base + "patches:\n- patch: '[{op: remove, path: /a}]'\n", "", "patches[0]: a JSON patch needs a target, such as {kind: Deployment, name: web}"},
		{"resources:\n- ../base\n-\n", "", "ov/kustomization.yaml:3: resources[1]: has no value; remove the dash, or name a file"},
		{"resources: [https://a.example/b?ref=v1]\n", "", "line 1: found a question mark in an unquoted scalar of a flow collection; put it in quotes"},
		{base + "labels:\n- pairs: {app: a b}\n", "", `ov/kustomization.yaml:3: labels[0].pairs.app: "a b" is not the value of a label`},
		{base + "commonLabels: {a/b/c: x}\n", "", `ov/kustomization.yaml:2: commonLabels["a/b/c"]: "a/b/c" is not the name of a label`},
		{base + "namespace: Shop_1\n", "", `ov/kustomization.yaml:2: namespace: "Shop_1" is not the name of a namespace`},
		{"resources:\n- ../base\n images:\n- name: a\n", "", "line 3: mapping values are not allowed here; is the line indented as its neighbours"},
	} {
		t.Chdir(t.TempDir())
		files := overlayOf(c.text)
		if c.patch != "" {
			files["src/ov/patch.yaml"] = c.patch
		}
		writeFiles(t, files)
		code, _, stderr := command(t, "", "render", "--pipelines", "pl", "--source", "src")
		if code != ExitError || !strings.Contains(stderr, c.want) {
			t.Errorf("%s%s: exit code %d, want %q\n%s", c.text, c.patch, code, c.want, stderr)
		}
	}
}

// TestTargetOfAPatchThatSelectsNothing: kustomize is silent about it.
func TestTargetOfAPatchThatSelectsNothing(t *testing.T) {
	const patches = "namePrefix: a-\nresources: [../base]\nconfigMapGenerator: [{name: c, literals: [a=b]}]\npatches:\n"
	const operation = "\n  patch: '[{\"op\": \"add\", \"path\": \"/metadata/generateName\", \"value\": \"b\"}]'\n"
	for text, want := range map[string]string{
		"- target: {kind: Deployment, name: wbe}" + operation: "warning: ov/kustomization.yaml:5: patches[0].target: no object is selected by Deployment wbe, so that the patch changes nothing, did you mean ",
		"- target: {kind: Deploymnet}" + operation:            "ov/kustomization.yaml:5: patches[0].target: no object is selected by Deploymnet, so that the patch changes nothing, did you mean Deployment?",
		"- target: {kind: Service, name: web}" + operation:    "no object is selected by Service web, so that the patch changes nothing\n",
		"- target: {kind: Deployment, name: web}" + operation: "",
		"- target: {kind: Deployment, name: w.*}" + operation: "",
		"- target: {kind: Deploy.*|StatefulSet}" + operation:  "",
		"- target: {kind: ConfigMap, name: c}" + operation:    "",
		"- target: {labelSelector: app=gone}" + operation:     "",
		"- target: {kind: Service, name: gone}\n  patch: |\n    $patch: delete\n    apiVersion: v1\n    kind: Service\n    metadata: {name: gone}\n": "",
	} {
		t.Chdir(t.TempDir())
		writeFiles(t, overlayOf(patches+text))
		_, stderr := ok(t, "", "render", "--pipelines", "pl", "--source", "src")
		if want == "" && strings.Contains(stderr, "no object is selected") || !strings.Contains(stderr, want) {
			t.Errorf("%s: want %q\n%s", text, want, stderr)
		}
	}
}

// TestImageThatNoObjectHas: kustomize is silent about it, too.
func TestImageThatNoObjectHas(t *testing.T) {
	const name = "example.com/web"
	for text, want := range map[string]string{
		"images: [{name: " + name + "x, newTag: '2'}]":                                              "warning: ov/kustomization.yaml:2: images[0].name: no object has the image " + name + "x, so that the entry changes nothing",
		"images: [{name: " + name + ", newTag: '2'}]":                                               "",
		"images: [{name: " + name + ", newName: registry.corp/a}]":                                  "",
		"images: [{name: " + name + ", newName: b}, {name: b, newName: c}]":                         "",
		"commonLabels: {cluster: '${CLUSTER}'}\nimages: [{name: " + name + ", digest: 'sha256:0'}]": "",
	} {
		t.Chdir(t.TempDir())
		writeFiles(t, overlayOf("resources: [../base]\n"+text+"\n"))
		_, stderr := ok(t, "", "render", "--pipelines", "pl", "--source", "src")
		if want == "" && strings.Contains(stderr, "changes nothing") || !strings.Contains(stderr, want) {
			t.Errorf("%s: want %q\n%s", text, want, stderr)
		}
	}
}

// TestBuildsWithoutManifestsFail: a path without manifests is an error at its line, and removes nothing that is published.
func TestBuildsWithoutManifestsFail(t *testing.T) {
	t.Chdir(t.TempDir())
	files := overlayOf("resources: [../base]\n")
	files["src/policy/mesh.yaml"] = policyText("  istio:\n    injector: {builtIn: istio}\n")
	files["src/Up/Kustomization.yaml"] = "resources: [../base]\n"
	at := func(path string) string { return strings.Replace(files["pl/p.yaml"], "path: ov", "path: "+path, 1) }
	files["docs/p.yaml"], files["policies/p.yaml"], files["upper/p.yaml"] = at("docs"), at("policy"), at("Up")
	files["meant/p.yaml"] = at("docs") + "  gates: {allowEmpty: true}\n"
	writeFiles(t, files)
	if _, stderr := ok(t, "", "render", "--pipelines", "pl", "--source", "src", "--to", "out"); stderr != "" {
		t.Log(stderr)
	}
	published, err := os.ReadDir("out/shop")
	must(t, err)
	if len(published) == 0 {
		t.Fatal("nothing is published")
	}
	for pipelines, want := range map[string]string{
		"docs":     "docs/p.yaml:6: gate allowEmpty: spec.build.path: docs has no manifest; set spec.gates.allowEmpty if that is meant",
		"policies": "policies/p.yaml:6: gate allowEmpty: spec.build.path: policy has no manifest",
		"upper":    "kustomization with a name that kustomize does not read (Up/Kustomization.yaml) was skipped; rename it to kustomization.yaml",
	} {
		for _, to := range [][]string{nil, {"--to", "out"}} {
			code, _, stderr := command(t, "", append([]string{"render", "--pipelines", pipelines, "--source", "src"}, to...)...)
			if code != ExitError || !strings.Contains(stderr, want) {
				t.Errorf("%s: exit code %d, want %q\n%s", pipelines, code, want, stderr)
			}
		}
	}
	if kept, err := os.ReadDir("out/shop"); err != nil || len(kept) != len(published) {
		t.Errorf("%d files are left of %d: %v", len(kept), len(published), err)
	}
	ok(t, "", "render", "--pipelines", "meant", "--source", "src")
}

// TestInputWithoutManifestsFails: a directory with only a kustomization and a policy is no success of any command.
func TestInputWithoutManifestsFails(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{
		"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": initWeb,
		"ov/kustomization.yaml": "resources: [../base]\n", "ov/prerig.yaml": policyText("  istio:\n    injector: {builtIn: istio}\n"),
		"dashes.yaml": "---\n---\n", "comment.yaml": "# later\n", "map.yaml": "apiVersion: v1\nkind: List\nitems: {}\n",
		"text.yaml": "apiVersion: v1\nkind: List\nitems: web\n", "service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}\n",
		"conflict.yaml": "apiVersion: v1\nkind: Pod\n<<<<<<< HEAD\nmetadata: {name: a}\n=======\nmetadata: {name: b}\n>>>>>>> b\n",
	})
	const build = "build the kustomization first: kustomize build ov | prerig "
	for args, want := range map[string]string{
		"inject ov": build + "inject", "inject --check ov": build + "inject", "check ov": build + "check", "gate ov": build + "gate",
		"lint ov": build + "lint", "admit ov": build + "admit", "explain -f ov": build + "explain",
		"inject ov/prerig.yaml": "ov/prerig.yaml (InjectionPolicy) is not a manifest; specify the files with the workloads",
		"inject dashes.yaml":    "warning: dashes.yaml: the file has no object, only comments or separators",
		"inject -q dashes.yaml": "error: no Kubernetes object was found, so nothing was injected",
		"check comment.yaml":    "error: no Kubernetes object was found, so nothing was checked",
		"inject map.yaml":       "map.yaml:3: the items of a List must be a list, and are a map",
		"check text.yaml":       "not everything was checked, because of 1 error",
		"admit service.yaml":    "no workload was found, so nothing was admitted; specify other files",
		"inject conflict.yaml":  "conflict.yaml:3: <<<<<<< HEAD is a marker of a conflict of Git; resolve the conflict",
	} {
		code, _, stderr := command(t, "", strings.Fields(args)...)
		if code != ExitError || !strings.Contains(stderr, want) {
			t.Errorf("prerig %s: exit code %d, want %q\n%s", args, code, want, stderr)
		}
	}
	if code, stdout, _ := command(t, "", "check", "text.yaml"); code != ExitError || strings.Count(stdout, "and are a text") != 1 {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	ok(t, "", "lint", "--allow-empty", "ov")
}
