// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

// policyText is a policy with a text below spec.
func policyText(spec string) string {
	return "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec:\n" + spec
}

// templatePolicy is a policy with an injector of its own, whose template has the image.
func templatePolicy(image, values string) string {
	return policyText("  istio:\n    injector:\n      config: |\n        policy: enabled\n        templates:\n          sidecar: |\n" +
		"            spec:\n              containers:\n              - name: istio-proxy\n                image: \"" + image + "\"\n" +
		"      values: |\n        " + values + "\n")
}

// TestPolicyErrorsNameFileLineAndField: an error of the engine about a value of a policy is placed at the value, as an
// error of its form is.
func TestPolicyErrorsNameFileLineAndField(t *testing.T) {
	t.Chdir(t.TempDir())
	const builtIn = "  istio:\n    injector: {builtIn: istio}\n"
	const values = `{"global": {"hub": "docker.io/istio", "tag": "1.30.3"}}`
	writeFiles(t, map[string]string{
		"shop.yaml":     initWeb,
		"mesh.yaml":     policyText(builtIn + "    meshConfig: |\n      enablePrometheusMerg: false\n"),
		"hub.yaml":      policyText("  istio:\n    injector:\n      builtIn: istio\n      overrides:\n        global:\n          hubb: a\n"),
		"tag.yaml":      policyText("  istio:\n    injector:\n      builtIn: istio\n      overrides:\n        global:\n          tag: 1.20.0\n"),
		"builtin.yaml":  policyText("  istio:\n    injector:\n      builtIn: isto\n"),
		"rule.yaml":     policyText(builtIn + "  lint:\n    rules:\n      PR999: Error\n"),
		"lock.yaml":     policyText(builtIn + "  images:\n    lock: images\n"),
		"from.yaml":     policyText("  from: Cluster\n  istio: {}\n"),
		"field.yaml":    templatePolicy("{{ .ProxyImge }}", values),
		"template.yaml": templatePolicy("{{ .ProxyImage ", values),
		"values.yaml":   templatePolicy("{{ .ProxyImage }}", `{"global": "hub": 1}`),
	})
	for file, want := range map[string]string{
		"hub":      "error: hub.yaml:10: InjectionPolicy mesh spec.istio.injector.overrides.global.hubb: ",
		"tag":      "error: tag.yaml:10: InjectionPolicy mesh spec.istio.injector.overrides.global.tag: ",
		"builtin":  "error: builtin.yaml:7: InjectionPolicy mesh spec.istio.injector.builtIn: finding the built-in policy \"isto\", did you mean istio?",
		"rule":     "error: rule.yaml:9: InjectionPolicy mesh spec.lint.rules.PR999: there is no rule \"PR999\"",
		"lock":     "error: lock.yaml:8: InjectionPolicy mesh spec.images.lock: ",
		"from":     "error: from.yaml:5: InjectionPolicy mesh spec.from: ",
		"field":    "has the field .ProxyImge; the template is in field.yaml:14",
		"template": "error: template.yaml:14: InjectionPolicy mesh spec.istio.injector.config.templates.sidecar: reading template \"sidecar\", line 4: ",
		"values":   "error: values.yaml:16: InjectionPolicy mesh spec.istio.injector.values: ",
	} {
		code, _, stderr := command(t, "", "inject", "-p", file+".yaml", "shop.yaml")
		if code != ExitError || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, want %q\n%s", file, code, want, stderr)
		}
	}
	want := "warning: mesh.yaml:8: InjectionPolicy mesh spec.istio.meshConfig.enablePrometheusMerg: field enablePrometheusMerg is not known and is ignored"
	if _, stderr := ok(t, "", "inject", "-p", "mesh.yaml", "shop.yaml"); !strings.Contains(stderr, want) {
		t.Error(stderr)
	}
}

// TestFlagErrorsNameTheFlag: a value of a flag is reported by the name of its flag, wherever it fails.
func TestFlagErrorsNameTheFlag(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{
		"shop.yaml": initWeb, "mesh.yaml": policyText("  istio:\n    injector: {builtIn: istio}\n"),
		"pod.yaml":   "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\nspec: {containers: [{name: a, image: a}]}\n",
		"k8s/a.yaml": initWeb,
	})
	for args, want := range map[string]string{
		"inject -n Shop_1 -p mesh.yaml shop.yaml":                           `--namespace: "Shop_1" is not a name`,
		"inject --istio-version 1.20 -p mesh.yaml shop.yaml":                `error: --istio-version is "1.20": the version is 1.20, and the built-in policy covers`,
		"inject --istio-version 1.20 shop.yaml":                             `error: --istio-version is "1.20": the version is 1.20, and the built-in policy covers`,
		"inject --istio-version 1.99 shop.yaml":                             "use a version from 1.28 to ",
		"gate --kubernetes-version 1.99 shop.yaml":                          `--kubernetes-version is "1.99"; the versions 1.29 to `,
		"verify --rendered k8s --ignore metadata.annotations[x -f pod.yaml": `--ignore is "metadata.annotations[x": [ is not closed`,
		"inject --injectConfigFile shop.yaml shop.yaml":                     "reading shop.yaml of --injectConfigFile: it is a Deployment; specify data.config of the ConfigMap istio-sidecar-injector",
		"gate --policies shop.yaml shop.yaml":                               "reading --policies: there is no admission policy in shop.yaml",
		"ambient plam":                                                      "did you mean plan?",
		"completion fsh":                                                    "did you mean fish?",
	} {
		code, _, stderr := command(t, "", strings.Fields(args)...)
		if code != ExitError || !strings.Contains(stderr, want) {
			t.Errorf("prerig %s: exit code %d, want %q\n%s", args, code, want, stderr)
		}
	}
}

// TestInputWithoutMeaningFails: what no cluster could use is an error and not an empty success.
func TestInputWithoutMeaningFails(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{
		"zero.yaml": "", "shop.yaml": initWeb,
		"chart/Chart.yaml": "name: a\nversion: 1.0.0\n", "chart/templates/a.yaml": "kind: {{ .Values.kind }}\n",
		"container.yaml": strings.Replace(initWeb, "containers:", "container:", 1),
		"app.yaml":       strings.Replace(initWeb, "apps/v1", "app/v1", 1),
		"core.yaml":      strings.Replace(initWeb, "apps/v1", "v1", 1),
		"mesh.yaml":      policyText("  istio:\n    injector: {builtIn: istio}\n  namespaces:\n  - {name: shop, labels: {istio-injection: enable}}\n"),
		"utf16.yaml":     "\xff\xfea\x00",
	})
	for args, want := range map[string]string{
		"inject zero.yaml":      "no Kubernetes object was found, so nothing was injected",
		"inject chart":          "no Kubernetes object was found, so nothing was injected",
		"inject --check chart":  "no Kubernetes object was found, so nothing was injected",
		"inject container.yaml": ".spec.container: unknown field, did you mean containers?",
		"inject utf16.yaml":     "the byte order mark of UTF-16; save the file as UTF-8",
		"import shop.yaml":      "importing: shop.yaml has only Deployment",
	} {
		code, _, stderr := command(t, "", strings.Fields(args)...)
		if code != ExitError || !strings.Contains(stderr, want) {
			t.Errorf("prerig %s: exit code %d, want %q\n%s", args, code, want, stderr)
		}
	}
	for file, version := range map[string]string{"app.yaml": "app/v1", "core.yaml": "v1"} {
		want := "Kubernetes has no kind Deployment in " + version + ", did you mean apps/v1?"
		if _, stderr := ok(t, "", "inject", file); !strings.Contains(stderr, "warning: "+file) || !strings.Contains(stderr, want) {
			t.Error(stderr)
		}
		if code, stdout, _ := command(t, "", "check", file); code != ExitFindings || !strings.Contains(stdout, "error: "+file) || !strings.Contains(stdout, want) {
			t.Errorf("check %s: exit code %d\n%s", file, code, stdout)
		}
	}
	if _, stderr := ok(t, "", "inject", "-p", "mesh.yaml", "shop.yaml"); !strings.Contains(stderr, "istio-injection=enable, and Istio reads only enabled and disabled, did you mean enabled?") {
		t.Error(stderr)
	}
}

// TestPipelineErrorsNameFileAndLine: an error about a field of a pipeline, or in a kustomization that it builds, has the
// file and the line.
func TestPipelineErrorsNameFileAndLine(t *testing.T) {
	t.Chdir(t.TempDir())
	builds := func(dir string) string { return strings.Replace(wrongPipeline("", ""), "path: k8s", "path: "+dir, 1) }
	writeFiles(t, map[string]string{
		"k8s/shop.yaml": initWeb, "good/p.yaml": wrongPipeline("", ""), "tab/p.yaml": "spec:\n\ta: b\n",
		"path/p.yaml": builds("k8"), "resource/p.yaml": builds("a"), "key/p.yaml": builds("b"), "patch/p.yaml": builds("c"), "json/p.yaml": builds("d"),
		"a/kustomization.yaml": "resources:\n- web.yaml\n",
		"b/kustomization.yaml": "resource:\n- ../k8s/shop.yaml\n",
		"c/kustomization.yaml": "resources: [shop.yaml]\npatches:\n- path: p.yaml\n", "c/shop.yaml": initWeb,
		"d/kustomization.yaml": "resources: [shop.yaml]\npatches:\n- target: {kind: Deployment}\n  patch: |-\n    - {op: replace, path: /spec/a/b, value: 1}\n", "d/shop.yaml": initWeb,
	})
	for args, want := range map[string]string{
		"render --pipelines path --source .":                 "error: shop/shop: path/p.yaml:6: spec.build.path: reading k8: file does not exist, did you mean k8s?",
		"render --pipelines resource --source .":             "building a: a/kustomization.yaml:2: resources[0]: web.yaml: no such file",
		"render --pipelines key --source .":                  "building b: b/kustomization.yaml:1: resource: unknown field, did you mean resources?",
		"render --pipelines patch --source .":                "building c: c/kustomization.yaml:3: patches[0].path: p.yaml: no such file",
		"render --pipelines json --source .":                 "building d: d/kustomization.yaml:3: patches[0]: operation 0: the object that it changes has no /spec/a/b",
		"render --pipelines tab shop":                        "reading p.yaml: reading RenderPipelines: line 2: found a tab",
		"render --pipelines good --source https://a.b/c=k8s": "no pipeline in good has the source https://a.b/c; the sources are https://git.example.com/a/b.git",
	} {
		code, _, stderr := command(t, "", strings.Fields(args)...)
		if code != ExitError || !strings.Contains(stderr, want) {
			t.Errorf("prerig %s: exit code %d, want %q\n%s", args, code, want, stderr)
		}
	}
}

// TestKubeconfigErrorsNameTheFile: an error about a cluster names the kubeconfig and the context.
func TestKubeconfigErrorsNameTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	config := func(current, user string) string {
		return "apiVersion: v1\nkind: Config\ncurrent-context: " + current + "\ncontexts:\n- {name: prod, context: {cluster: a, user: a}}\n" +
			"clusters:\n- {name: a, cluster: {server: 'https://127.0.0.1:1'}}\nusers:\n- {name: a, user: {" + user + "}}\n"
	}
	writeFiles(t, map[string]string{
		"typo": config("prd", ""), "refused": config("prod", ""), "shop.yaml": initWeb, "two.yaml": initWeb + "---\n" + initWeb,
		"empty": "", "none": strings.Replace(config("", ""), "current-context: \n", "", 1), "cluster": strings.Replace(config("prod", ""), "cluster: a", "cluster: b", 1),
		"user":   strings.Replace(config("prod", ""), "user: a}", "user: aa}", 1),
		"scheme": strings.Replace(config("prod", ""), "https://", "", 1), "htps": strings.Replace(config("prod", ""), "https://", "htps://", 1),
		"data": strings.Replace(config("prod", ""), "server:", "certificate-authority-data: '###', server:", 1),
		"list": "apiVersion: v1\nkind: Config\nclusters:\n- name a\n",
		"exec": config("prod", "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws-nope, interactiveMode: Never}"),
	})
	for name, want := range map[string]string{
		"typo":      `reading the kubeconfig typo: current-context is "prd", and it has no such context, did you mean prod?; it has prod`,
		"shop.yaml": "reading the kubeconfig shop.yaml: it is a Deployment and not a kubeconfig",
		"list":      "reading the kubeconfig list: line 4: clusters[0]: must be a map, is the text \"name a\"",
		"empty":     "reading the kubeconfig empty: the file is empty",
		"none":      "reading the kubeconfig none: it has no current-context; choose a context with --context; it has prod",
		"cluster":   `reading the kubeconfig cluster: the context prod has the cluster "b", and there is no such cluster; it has a`,
		"user":      `reading the kubeconfig user:5: the context prod has the user "aa", and there is no such user; it has a`,
		"scheme":    `reading the kubeconfig scheme:7: the server of the cluster a is "127.0.0.1:1"; it must begin with https://, such as https://127.0.0.1:1`,
		"htps":      `reading the kubeconfig htps:7: the server of the cluster a is "htps://127.0.0.1:1"; it must begin with https://`,
		"data":      "reading the kubeconfig data: line 7: clusters[0].cluster.certificate-authority-data: must be a PEM file in base64",
		"two.yaml":  "reading the kubeconfig two.yaml: it has 2 documents, the first of which is a Deployment, and is not a kubeconfig",
		"exec":      "reading the kubeconfig exec, context prod: its user gets credentials from the program aws-nope, which is not installed",
		"refused":   "connection refused (the server of the kubeconfig refused, context prod)",
	} {
		code, _, stderr := command(t, "", "import", "--kubeconfig", name)
		if code != ExitError || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, want %q\n%s", name, code, want, stderr)
		}
	}
}
