// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// overlaidBase is a base with an init container, a volume and a pull secret, beside what an injection adds.
var overlaidBase = map[string]string{
	"base/kustomization.yaml": "resources: [web.yaml]\n",
	"base/web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {tier: front}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: migrate, image: "migrate:1"}]
      containers: [{name: web, image: "web:1", args: [a, b], ports: [{containerPort: 80}], volumeMounts: [{name: data, mountPath: /data}]}]
      tolerations: [{key: a, operator: Exists}]
      volumes: [{name: data, emptyDir: {}}]
`,
}

// overBase is a kustomization over the base with further lines.
func overBase(lines string) string { return "resources: [../base]\n" + lines }

// jsonPatch is an inline JSON patch of all Deployments.
func jsonPatch(operations string) string {
	return overBase("patches:\n- target: {kind: Deployment}\n  patch: |-\n    " + strings.ReplaceAll(operations, "\n", "\n    ") + "\n")
}

// TestInjectKeepsOverlaysOfLists fails for a base whose overlays address by position, or replace, what the injection changes, and names
// each line. Nothing is written then.
func TestInjectKeepsOverlaysOfLists(t *testing.T) {
	const web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  []string // places, and what is there
	}{
		"a position": {map[string]string{"over/kustomization.yaml": jsonPatch(
			"- {op: replace, path: /spec/template/spec/containers/0/image, value: \"web:2\"}\n- op: replace\n  path: /spec/template/spec/initContainers/0/image\n  value: \"migrate:2\"")},
			[]string{"over/kustomization.yaml:7: Deployment web spec.template.spec.initContainers: the JSON patch addresses initContainers/0 by its position"}},
		"an inserted element": {map[string]string{"over/kustomization.yaml": jsonPatch("- {op: add, path: /spec/template/spec/volumes/0, value: {name: x, emptyDir: {}}}")},
			[]string{"over/kustomization.yaml:5: "}},
		"a removed element": {map[string]string{"over/kustomization.yaml": jsonPatch("- {op: remove, path: /spec/template/spec/volumes/0}")}, []string{"over/kustomization.yaml:5: "}},
		"a whole list": {map[string]string{"over/kustomization.yaml": jsonPatch("- {op: add, path: /spec/template/spec/volumes, value: []}")},
			[]string{"over/kustomization.yaml:5: Deployment web spec.template.spec.volumes: the JSON patch replaces volumes as a whole"}},
		"what is around a list": {map[string]string{"over/kustomization.yaml": jsonPatch("- {op: replace, path: /spec/template, value: {}}")}, []string{"spec.template: the JSON patch replaces template as a whole"}},
		"all annotations":       {map[string]string{"over/kustomization.yaml": jsonPatch("- {op: add, path: /spec/template/metadata/annotations, value: {a: b}}")}, []string{"replaces annotations as a whole"}},
		"a move from a position": {map[string]string{"over/kustomization.yaml": jsonPatch("- {op: move, from: /spec/template/spec/volumes/0, path: /spec/template/spec/volumes/-}")},
			[]string{"over/kustomization.yaml:5: "}},
		"a patch in a file": {map[string]string{
			"over/kustomization.yaml": overBase("patches: [{target: {kind: Deployment, name: web}, path: sub/p.yaml}]\n"),
			"over/sub/p.yaml":         "# why\n- op: remove\n  path: /spec/template/spec/initContainers/0/securityContext\n",
		}, []string{"over/sub/p.yaml:3: "}},
		"a patch in JSON": {map[string]string{
			"over/kustomization.yaml": overBase("patchesJson6902: [{target: {group: apps, version: v1, kind: Deployment, name: web}, path: p.json}]\n"),
			"over/p.json":             "[\n {\"op\": \"remove\", \"path\": \"/spec/template/spec/volumes/0\"}\n]\n",
		}, []string{"over/p.json:2: "}},
		"an inline patch of patchesJson6902": {map[string]string{"over/kustomization.yaml": overBase("patchesJson6902:\n- target: {version: v1, kind: Deployment, name: web}\n  patch: '[{op: remove, path: /spec/template/spec/volumes/0}]'\n")},
			[]string{"over/kustomization.yaml:4: "}},
		"a component": {map[string]string{
			"over/kustomization.yaml": overBase("components: [../component]\n"),
			"component/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n" +
				"patches: [{target: {kind: Deployment}, patch: '[{op: remove, path: /spec/template/spec/volumes/0}]'}]\n",
		}, []string{"component/kustomization.yaml:3: ", "kustomize build over,"}},
		"through a nested base": {map[string]string{
			"middle/kustomization.yaml": overBase("namePrefix: my-\nnamespace: shop\n"),
			"over/kustomization.yaml":   "bases: [../middle]\npatches:\n- target: {name: my-web, namespace: shop}\n  patch: '[{op: remove, path: /spec/template/spec/volumes/0}]'\n",
		}, []string{"over/kustomization.yaml:4: "}},
		"in the base itself": {map[string]string{"base/kustomization.yaml": "resources: [web.yaml]\npatches: [{target: {kind: Deployment}, patch: '[{op: remove, path: /spec/template/spec/volumes/0}]'}]\n"},
			[]string{"base/kustomization.yaml:2: "}},
		"a selector of labels": {map[string]string{"over/kustomization.yaml": overBase("patches: [{target: {labelSelector: tier=front}, patch: '[{op: remove, path: /spec/template/spec/volumes/0}]'}]\n")},
			[]string{"over/kustomization.yaml:2: "}},
		"the target of a replacement": {map[string]string{"over/kustomization.yaml": overBase("replacements:\n- source: {kind: ConfigMap, name: c, fieldPath: data.x}\n  targets:\n  - select: {kind: Deployment}\n    fieldPaths:\n" +
			"    - spec.template.spec.containers.[name=web].image\n    - spec.template.spec.initContainers.0.image\n")}, []string{"over/kustomization.yaml:8: Deployment web spec.template.spec.initContainers: the replacement addresses"}},
		"all elements for a replacement": {map[string]string{
			"over/kustomization.yaml": overBase("replacements: [{path: r.yaml}]\n"),
			"over/r.yaml":             "source: {kind: ConfigMap, name: c, fieldPath: data.x}\ntargets:\n- select: {kind: Deployment}\n  fieldPaths: ['spec.template.spec.initContainers.*.image']\n",
		}, []string{"over/r.yaml:4: "}},
		"the source of a replacement": {map[string]string{"over/kustomization.yaml": overBase("replacements: [{source: {kind: Deployment, name: web, fieldPath: spec.template.spec.volumes.0.name}, targets: [{select: {kind: Service}, fieldPaths: [metadata.name]}]}]\n")},
			[]string{"the source of the replacement addresses volumes/0"}},
		"a variable": {map[string]string{"over/kustomization.yaml": overBase("vars:\n- name: IMAGE\n  objref: {apiVersion: apps/v1, kind: Deployment, name: web}\n  fieldref: {fieldPath: 'spec.template.spec.initContainers[0].image'}\n")},
			[]string{"over/kustomization.yaml:5: Deployment web spec.template.spec.initContainers: the variable addresses initContainers/0"}},
		"$patch: replace": {map[string]string{"over/kustomization.yaml": overBase("patches:\n- patch: |\n    " + strings.ReplaceAll(web, "\n", "\n    ") +
			"spec: {template: {spec: {volumes: [{name: x, emptyDir: {}}, {$patch: replace}]}}}\n")}, []string{"over/kustomization.yaml:7: Deployment web spec.template.spec.volumes: the patch has $patch: replace"}},
		"$patch: replace of the spec": {map[string]string{"over/kustomization.yaml": overBase("patchesStrategicMerge: [p.yaml]\n"),
			"over/p.yaml": web + "spec:\n  template:\n    spec:\n      $patch: replace\n      containers: []\n"}, []string{"over/p.yaml:6: Deployment web spec.template.spec: the patch has $patch: replace"}},
		"$setElementOrder": {map[string]string{"over/kustomization.yaml": overBase("patches: [{path: p.yaml}]\n"),
			"over/p.yaml": web + "spec: {template: {spec: {$setElementOrder/initContainers: [{name: migrate}]}}}\n"}, []string{"over/p.yaml:4: "}},
		"null": {map[string]string{"over/kustomization.yaml": overBase("patches: [{path: p.yaml}]\n"),
			"over/p.yaml": web + "spec: {template: {spec: {volumes: null}}}\n"}, []string{"the patch removes volumes as a whole"}},
		"a transformer": {map[string]string{"over/kustomization.yaml": overBase("transformers: [t.yaml]\n"),
			"over/t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\ntarget: {kind: Deployment}\npatch: '[{op: remove, path: /spec/template/spec/volumes/0}]'\n"}, []string{"over/t.yaml:5: "}},
	} {
		checkOverlaid(t, name, c.files, c.want)
	}
}

// TestInjectKeepsPatchesOfAppliers fails for a base that Flux or Argo CD patches by position as it applies it.
func TestInjectKeepsPatchesOfAppliers(t *testing.T) {
	const patches = "patches:\n- target: {kind: Deployment}\n  patch: |\n    - op: replace\n      path: /spec/template/spec/initContainers/0/image\n      value: x\n"
	flux := func(path, patches string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web}\nspec:\n  path: " + path + "\n  " +
			strings.TrimSpace(strings.ReplaceAll(patches, "\n", "\n  ")) + "\n"
	}
	argo := func(source string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec:\n  " + source + "\n"
	}
	operations := "[{op: replace, path: /spec/template/spec/initContainers/0/image, value: x}]"
	const addresses = "Deployment web spec.template.spec.initContainers: the JSON patch addresses initContainers/0 by its position"
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"Flux": {map[string]string{"over/web.yaml": "kind: List\n---\n" + flux("./base", patches)},
			[]string{"over/web.yaml:12: " + addresses, "move the patch of the Flux Kustomization to a kustomization over base"}},
		"Flux, an overlay": {map[string]string{"over/web.yaml": flux("over/app", patches), "over/app/kustomization.yaml": "resources: [../../base]\n"},
			[]string{"over/web.yaml:10: " + addresses}},
		"Flux, another namespace": {map[string]string{"over/web.yaml": flux("base", "targetNamespace: shop\n"+strings.Replace(patches, "{kind", "{namespace: shop, kind", 1))},
			[]string{"over/web.yaml:11: " + addresses}},
		"Flux, a key":             {map[string]string{"over/web.yaml": flux("base", strings.Replace(patches, "initContainers/0/image", "replicas", 1))}, nil},
		"Flux, another directory": {map[string]string{"over/web.yaml": flux("./other", patches)}, nil},
		"Argo CD": {map[string]string{"over/web.yaml": argo("source: {path: base, kustomize: {patches: [{target: {kind: Deployment}, patch: '" + operations + "'}]}}")},
			[]string{"over/web.yaml:5: " + addresses, "move the patch of the Argo CD Application to a kustomization over base"}},
		"Argo CD, several sources": {map[string]string{"over/web.yaml": argo("sources:\n  - {chart: a}\n  - path: over/app\n    kustomize:\n      patches: [{target: {kind: Deployment}, path: p.yaml}]"),
			"over/app/p.yaml": operations, "over/app/kustomization.yaml": "resources: [../../base]\n"}, []string{"over/app/p.yaml:1: " + addresses}},
		"Flux, all of a directory": {map[string]string{"over/web.yaml": flux("./", patches)}, []string{"over/web.yaml:10: " + addresses}},
		"Argo CD, without patches": {map[string]string{"over/web.yaml": argo("source: {path: base, kustomize: {namePrefix: a-}}")}, nil},
	} {
		checkOverlaid(t, name, c.files, c.want)
	}
}

// TestInjectLeavesOtherOverlays accepts overlays that an injection of the base does not disturb.
func TestInjectLeavesOtherOverlays(t *testing.T) {
	const web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
	for name, lines := range map[string]string{
		"a list that stays":            "patches: [{target: {kind: Deployment}, patch: '[{op: replace, path: /spec/template/spec/containers/0/image, value: x}]'}]\n",
		"a list in an element":         "patches: [{target: {kind: Deployment}, patch: '[{op: replace, path: /spec/template/spec/containers/0/args/1, value: x}]'}]\n",
		"another list":                 "patches: [{target: {kind: Deployment}, patch: '[{op: replace, path: /spec/template/spec/tolerations, value: []}]'}]\n",
		"the end of a list":            "patches: [{target: {kind: Deployment}, patch: '[{op: add, path: /spec/template/spec/volumes/-, value: {name: x, emptyDir: {}}}]'}]\n",
		"one annotation":               "patches: [{target: {kind: Deployment}, patch: '[{op: add, path: /spec/template/metadata/annotations/a, value: x}]'}]\n",
		"another name":                 "patches: [{target: {kind: Deployment, name: we}, patch: '[{op: remove, path: /spec/template/spec/volumes/0}]'}]\n",
		"another kind":                 "patches: [{target: {kind: StatefulSet}, patch: '[{op: remove, path: /spec/template/spec/volumes/0}]'}]\n",
		"another namespace":            "patches: [{target: {namespace: other}, patch: '[{op: remove, path: /spec/template/spec/volumes/0}]'}]\n",
		"another label":                "patches: [{target: {labelSelector: tier=back}, patch: '[{op: remove, path: /spec/template/spec/volumes/0}]'}]\n",
		"a rejected target":            "replacements: [{sourceValue: x, targets: [{select: {kind: Deployment}, reject: [{name: web}], fieldPaths: [spec.template.spec.volumes.0.name]}]}]\n",
		"a patch of the whole object":  "patches:\n- patch: |\n    $patch: delete\n    " + strings.TrimSuffix(strings.ReplaceAll(web, "\n", "\n    "), "    "),
		"a merge by names":             "patches:\n- patch: |\n    " + strings.ReplaceAll(web, "\n", "\n    ") + "spec: {template: {spec: {initContainers: [{name: migrate, image: x}], volumes: [{name: data, $patch: delete}]}}}\n",
		"a merge of a list that stays": "patches:\n- patch: |\n    " + strings.ReplaceAll(web, "\n", "\n    ") + "spec: {template: {spec: {tolerations: [], containers: [{name: web, args: [c]}]}}}\n",
		"a merge of another":           "patches:\n- patch: |\n    " + strings.ReplaceAll(strings.Replace(web, "web", "other", 1), "\n", "\n    ") + "spec: {template: {spec: {volumes: null}}}\n",
	} {
		checkOverlaid(t, name, map[string]string{"over/kustomization.yaml": overBase(lines)}, nil)
	}
	checkOverlaid(t, "an overlay of another base", map[string]string{
		"over/kustomization.yaml":  "resources: [../other]\npatches: [{target: {kind: Deployment}, patch: '[{op: remove, path: /spec/template/spec/volumes/0}]'}]\n",
		"other/kustomization.yaml": "resources: [d.yaml]\n", "other/d.yaml": overlaidBase["base/web.yaml"],
	}, nil)
}

// TestInjectKeepsOverlaysOfKinds checks other kinds, lists and policies than those of a Deployment with a native proxy.
func TestInjectKeepsOverlaysOfKinds(t *testing.T) {
	const ordinary = "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: p}\nspec: {istio: {nativeSidecars: Disabled, injector: {builtIn: istio, overrides: {global: {imagePullSecrets: [mirror]}}}}}\n"
	const pod = "{metadata: {labels: {app: x}}, spec: {containers: [{name: x, image: \"x:1\"}], imagePullSecrets: [{name: own}]}}"
	object := func(version, kind, spec string) string {
		return "apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: x}\nspec: " + spec + "\n"
	}
	remove := func(path string) string {
		return overBase("patches: [{target: {name: x}, patch: '[{op: remove, path: " + path + "}]'}]\n")
	}
	stateful := object("apps/v1", "StatefulSet", "{serviceName: x, template: "+pod+"}")
	rollout := object("argoproj.io/v1alpha1", "Rollout", "{template: "+pod+"}")
	lists := func(version, kind string) string {
		return overBase("patches:\n- patch: '{apiVersion: " + version + ", kind: " + kind + ", metadata: {name: x}, spec: {template: {spec: {containers: [{name: x, image: \"x:2\"}]}}}}'\n")
	}
	for name, c := range map[string]struct{ object, overlay, want string }{
		"an ordinary proxy":       {stateful, remove("/spec/template/spec/containers/0/args"), "from [x] to [x, istio-proxy]"},
		"pull secrets":            {stateful, remove("/spec/template/spec/imagePullSecrets"), "replaces imagePullSecrets as a whole"},
		"a Pod":                   {"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: x, image: \"x:1\"}]}\n", remove("/spec/containers/1"), "Pod x spec.containers"},
		"a CronJob":               {object("batch/v1", "CronJob", "{schedule: '* * * * *', jobTemplate: {spec: {template: "+pod+"}}}"), remove("/spec/jobTemplate/spec/template/spec/containers/0"), "CronJob x spec.jobTemplate.spec.template.spec.containers"},
		"a custom kind":           {rollout, remove("/spec/template/spec/containers/0"), "Rollout x spec.template.spec.containers"},
		"a list without schema":   {rollout, lists("argoproj.io/v1alpha1", "Rollout"), "the patch replaces containers as a whole"},
		"a list with schema":      {stateful, lists("apps/v1", "StatefulSet"), ""},
		"a list of known kinds":   {rollout, lists("argoproj.io/v1alpha1", "Rollout") + "openapi: {path: schema.json}\n", ""},
		"an element of a List":    {"apiVersion: v1\nkind: List\nitems:\n- " + strings.TrimSpace(strings.ReplaceAll(stateful, "\n", "\n  ")) + "\n", remove("/spec/template/spec/containers/0"), "StatefulSet x spec.template.spec.containers"},
		"no injection":            {strings.Replace(stateful, "{app: x}", "{sidecar.istio.io/inject: 'false'}", 1), remove("/spec/template/spec/containers/0"), ""},
		"a field of the workload": {stateful, remove("/spec/serviceName"), ""},
	} {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "base"), 0o700))
		must(t, os.Mkdir(filepath.Join(dir, "over"), 0o700))
		for path, content := range map[string]string{"prerig.yaml": ordinary, "base/kustomization.yaml": "resources: [x.yaml]\n", "base/x.yaml": c.object, "over/kustomization.yaml": c.overlay} {
			must(t, os.WriteFile(filepath.Join(dir, path), []byte(content), 0o600))
		}
		// Without a repository, and with an absolute path.
		code, _, text := command(t, "", "inject", "-q", "-i", "-p", filepath.Join(dir, "prerig.yaml"), filepath.Join(dir, "base", "x.yaml"))
		if failed := code == 2; failed != (c.want != "") || !strings.Contains(text, c.want) || failed && !strings.Contains(text, filepath.Join(dir, "over")) {
			t.Errorf("%s: exit code %d:\n%s", name, code, text)
		}
	}
}

// checkOverlaid injects the base of a repository in place, and compares what is reported of its overlays.
func checkOverlaid(t *testing.T, name string, more map[string]string, want []string) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, ".git"), 0o700))
	for _, files := range []map[string]string{overlaidBase, more} {
		for path, content := range files {
			path = filepath.Join(dir, path)
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			must(t, os.WriteFile(path, []byte(content), 0o600))
		}
	}
	t.Chdir(dir)
	code, _, text := command(t, "", "inject", "--check", "base")
	if failed := code == 2; failed != (len(want) > 0) {
		t.Errorf("%s: --check exits with %d:\n%s", name, code, text)
	}
	code, _, text = command(t, "", "inject", "-q", "-i", "base")
	written, err := os.ReadFile("base/web.yaml")
	must(t, err)
	kept := bytes.Equal(written, []byte(overlaidBase["base/web.yaml"]))
	if failed := code == 2; failed != (len(want) > 0) || kept != failed || strings.Count(text, "error: ") != min(len(want), 1) {
		t.Errorf("%s: -i exits with %d, kept the file: %t\n%s", name, code, kept, text)
	}
	for _, line := range want {
		if !strings.Contains(text, line) {
			t.Errorf("%s: the text lacks %q:\n%s", name, line, text)
		}
	}
	if len(want) == 0 {
		return
	}
	// With the injection in the file it is the same.
	must(t, os.RemoveAll("over"))
	must(t, os.RemoveAll("component"))
	must(t, os.WriteFile("base/kustomization.yaml", []byte(overlaidBase["base/kustomization.yaml"]), 0o600))
	if code, _, text := command(t, "", "inject", "-q", "-i", "base"); code != 0 {
		t.Fatalf("%s: without the overlay: exit code %d\n%s", name, code, text)
	}
	for path, content := range more {
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(content), 0o600))
	}
	if code, _, text := command(t, "", "inject", "-q", "--check", "base"); code != 2 || !strings.Contains(text, want[0]) {
		t.Errorf("%s: --check of the injected base exits with %d:\n%s", name, code, text)
	}
	if code, _, text := command(t, "", "inject", "-q", "--remove", "-i", "base"); code != 0 {
		t.Errorf("%s: --remove exits with %d:\n%s", name, code, text)
	}
}
