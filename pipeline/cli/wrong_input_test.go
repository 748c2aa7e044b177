// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wrongPipeline is a pipeline with a mistake in its source.
func wrongPipeline(source, rest string) string {
	return "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: shop, namespace: shop}\nspec:\n" +
		"  source: {git: {url: https://git.example.com/a/b.git}" + source + "}\n  build: {path: k8s}\n  publish: [{git: {branch: rendered}}]\n" + rest
}

// TestWrongInputIsExplained: a message names what is wrong, where, and what to do, for mistakes that people make.
func TestWrongInputIsExplained(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	policy := "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec: {istio: {injector: {builtIn: istio}}}\n"
	writeFiles(t, map[string]string{
		"shop.yaml": initWeb, "k8s/shop.yaml": initWeb, "two.yaml": initWeb + "---\n" + initWeb, "empty.yaml": "",
		"kind.yaml":       strings.Replace(policy, "InjectionPolicy", "InjectionPolcy", 1),
		"brace.yaml":      "apiVersion: v1\nkind: Pod\nmetadata: {name: a\nspec:\n  containers: []\n",
		"bracket.yaml":    "apiVersion: v1\nkind: Pod\nspec:\n  containers: [\n  - name: pay\n    image: pay\n",
		"interval/p.yaml": wrongPipeline(", interval: 5s", ""), "file/p.yaml": wrongPipeline("", "  policies: [{file: mesh.yaml}]\n"),
		"good/p.yaml": wrongPipeline("", ""), "policy.yaml": policy, "bare.git/objects/x": "",
		"ov/kustomization.yaml": "resources: [../k8s]\n",
		"mesh-syntax.yaml":      policyText("  istio:\n    injector: {builtIn: istio}\n    meshConfig: |\n      a: b\n       c: d\n"),
		"values-syntax.yaml":    policyText("  istio:\n    injector:\n      config: |\n        policy: enabled\n        templates: {sidecar: \"spec: {}\"}\n      values: |\n        {\"global\": {\n          \"hub\" \"a\"}}\n"),
		"no-values.yaml":        policyText("  istio:\n    injector:\n      config: |\n        policy: enabled\n        templates: {sidecar: \"spec: {}\"}\n"),
		"nameless/p.yaml":       strings.Replace(wrongPipeline("", ""), "name: shop,", "nam: shop,", 1),
		"same.yaml":             "listen: 127.0.0.1:18080\nadmin: {listen: 127.0.0.1:18080}\npipelines: good\n",
		"receiver.yaml":         "receivers: [{name: gh, provider: githb, insecure: true}]\npipelines: good\n",
		"secret.yaml":           "receivers: [{name: gh, provider: github, secret: hook}]\npipelines: good\n",
		"tls.yaml":              "tls: {certificate: nocert.pem, key: nokey.pem}\npipelines: good\n", "good.yaml": "pipelines: good\n",
		"two-kinds.yaml": initWeb + "---\napiVersion: v1\nkind: Service\nmetadata: {name: a}\n",
		"typo.yaml":      "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nmetadata: {name: a}\nspec:\n  tag: 1.30.1\n  values:\n    global:\n      proxyy: {logLevel: debug}\n",
	})
	for args, want := range map[string]string{
		"inject --dif k8s":                               "unknown flag: --dif, did you mean --diff?; see prerig inject --help",
		"inject -d k8s":                                  "unknown shorthand flag: 'd' in -d, did you mean --diff?; see prerig inject --help",
		"inject --istio 1.31 k8s":                        "unknown flag: --istio, did you mean --istio-version",
		"inject shp.yaml":                                "reading shp.yaml: no such file or directory, did you mean shop.yaml?",
		"inject https://example.com/p.yaml":              "URLs are not read; pipe the file: curl -fsSL https://example.com/p.yaml | prerig inject",
		"inject -p https://example.com/p.yaml shop.yaml": "URLs are not read; save the file first: curl -fsSLo prerig.yaml https://example.com/p.yaml",
		"inject -p istioo shop.yaml":                     "no built-in policy of that name, did you mean istio? (built-in policies: ",
		"inject -p shop.yaml k8s":                        "reading policy shop.yaml: it is a Deployment and not an InjectionPolicy; to inject it, specify the file without -p",
		"inject -p two.yaml k8s":                         "reading policy two.yaml: it contains no InjectionPolicy, only Deployment; to inject these objects, specify the file without -p",
		"inject -p kind.yaml k8s":                        `line 2: kind: "InjectionPolcy" is not supported; it must be InjectionPolicy`,
		"inject brace.yaml":                              `decoding brace.yaml:4: expected a comma or "}" and found ":"; is the "{" of line 3 closed?`,
		"inject bracket.yaml":                            `decoding bracket.yaml:5: did not expect "- name: pay" here; is the "[" of line 4 closed?`,
		"inject --istio-version abc shop.yaml":           `--istio-version is "abc"; it must be a version of Istio, such as 1.31 or 1.31.0`,
		"inject --kubernetes-version 134 shop.yaml":      `--kubernetes-version is "134"; it must be a version of Kubernetes, such as 1.34, did you mean 1.34?`,
		"check --kubernetes-version 1.5 shop.yaml":       `--kubernetes-version is "1.5"; sidecar injection needs Kubernetes 1.9 or newer`,
		"import --kubernetes-version x shop.yaml":        `--kubernetes-version is "x"; it must be a version of Kubernetes`,
		"k8s/":                                   "unknown command k8s/; did you mean prerig inject k8s/?",
		"shop.yaml":                              "unknown command shop.yaml; did you mean prerig inject shop.yaml?",
		"validate k8s":                           "unknown command validate; use prerig check",
		"get pods":                               "unknown command get; use prerig daemon status",
		"apply -f shop.yaml":                     "unknown command apply; use prerig inject FILE | kubectl apply -f -",
		"import":                                 "standard input is empty; did the command before the pipe fail? It should print the objects of the control plane, such as:",
		"ambient plan ov":                        "no Kubernetes object was found, so nothing was planned; build the kustomization first: kustomize build ov | prerig ambient plan, or see",
		"images pin --to - ov":                   "no Kubernetes object was found, so nothing was resolved; build the kustomization first: kustomize build ov | prerig images pin",
		"ambient plan --only nope k8s":           "no file has the namespace nope of --only; the files have shop",
		"inject -p policy shop.yaml":             "reading policy policy: no such file, did you mean policy.yaml?",
		"inject -p policy.yaml,a.yaml shop.yaml": "reading policy policy.yaml,a.yaml: no such file; to use several policies, repeat the flag: -p policy.yaml -p a.yaml",
		"inject k9/*.yaml":                       "reading k9/*.yaml: no such file or directory; no file matches the pattern, or the shell did not expand it; name the directory: k9",
		"version foo":                            `prerig version takes no arguments, and has "foo"`,
		"capture prod --to x":                    `prerig capture takes no arguments, and has "prod"; a context of the kubeconfig is written --context prod`,
		"images pin --to - --image Nginx:1":      `resolving Nginx:1: reading the image: its name "Nginx:1" has capital letters; write nginx:1`,
		"images pin --to - --image x:1.31:0":     `its name "x:1.31:0" has two tags`,
		"inject -p mesh-syntax.yaml shop.yaml":   "mesh-syntax.yaml:9: InjectionPolicy mesh spec.istio.meshConfig: reading the mesh config (data.mesh of the ConfigMap istio): line 2 of the text: ",
		"inject -p values-syntax.yaml shop.yaml": "values-syntax.yaml:12: InjectionPolicy mesh spec.istio.injector.values: reading the injector's values (data.values): line 2 of the text: ",
		"inject -p no-values.yaml shop.yaml":     "no-values.yaml:7: InjectionPolicy mesh spec.istio.injector.config: reading the injector's values: there are none; write data.values",
		"render --pipelines nameless":            "metadata.name: is missing; a name has lower case letters",
		"serve --config same.yaml":               "same.yaml:2: configuration admin.listen: is 127.0.0.1:18080, the address of listen; set another one",
		"serve --config receiver.yaml --state state --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0": `receiver.yaml:1: configuration receivers[0].provider: checking receiver "gh": provider "githb" is not one of`,
		"serve --config secret.yaml --state state --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0":   `secret.yaml:1: configuration receivers[0].secret: reading the secret of receiver "gh": open hook: no such file`,
		"serve --config tls.yaml --state state --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0":      `tls.yaml:1: configuration tls: reading the certificate: open nocert.pem: no such file`,
		"serve --config good.yaml --state shop.yaml --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0": "--state: configuration state: making the state directory: mkdir shop.yaml: not a directory; choose a directory with --state",
		"explain deployment/wbe -f k8s": "finding deployment/wbe: no such workload; similar ones: Deployment shop/web (k8s/shop.yaml:1)\n",
		"explain web":                   "web is no file, and a workload is KIND/NAME; did you mean deployment/web?",
		"admit -o table shop.yaml":      `error: --output is "table"; it can be yaml or json`,
		"review -C nodir":               "reading the repository of -C: nodir: no such directory",
		"review -C bare.git":            "bare.git is a bare repository, which has no files to compare with",
		"import policy.yaml":            "importing: policy.yaml (InjectionPolicy) is an input of Prerig already; prerig inject takes a policy with -p FILE",
		"import two-kinds.yaml":         "two-kinds.yaml has only Deployment, Service: it has no ConfigMap",
		"images verify two-kinds.yaml":  "a file of this kind has one object, and this one has Deployment, Service",
		"init --yes --source https://a.example/b.git --publish foo#bar":        `--publish is "foo#bar": the part before the # is the URL of a repository`,
		"init --yes --source https://a.example/b.git --name Shop_1":            `--name is "Shop_1"; the name of a pipeline has lower-case letters, digits and hyphens`,
		"render --pipelines interval --source .":                               "line 5: spec.source.interval: unknown field, did you mean spec.interval?",
		"render --pipelines file --source .":                                   "the directory of policies, policies, cannot be opened; specify another one with --policies",
		"render --pipelines nowhere":                                           "nowhere is not a directory; specify it with --pipelines, or write pipelines with prerig init --source .",
		"verify --rendered k8s":                                                "there is no kubeconfig: set --kubeconfig or KUBECONFIG, or specify files with the output of kubectl get -o yaml",
		"gate --as-is --crds shop.yaml shop.yaml":                              "reading --crds: there is no CustomResourceDefinition in shop.yaml; specify the cluster's definitions",
		"daemon status --server https" + strings.TrimPrefix(plain.URL, "http"): "; use --server " + plain.URL + "\n",
	} {
		code, _, stderr := command(t, "", strings.Fields(args)...)
		if code != ExitError || !strings.Contains(stderr, want) {
			t.Errorf("prerig %s: exit code %d, want %q\n%s", args, code, want, stderr)
		}
	}
	if _, stderr := ok(t, "", "import", "typo.yaml"); !strings.Contains(stderr, "warning: spec.values.global.proxyy (typo.yaml:8): unknown value, did you mean proxy?") {
		t.Error(stderr)
	}
	if _, stderr := ok(t, "", "inject", "empty.yaml", "shop.yaml"); !strings.Contains(stderr, "warning: empty.yaml: the file is empty\n") {
		t.Error(stderr)
	}
}

// TestWrongPoliciesAndRepositoriesAreExplained has the mistakes of people who tried Prerig for the first time.
func TestWrongPoliciesAndRepositoriesAreExplained(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("HOME", t.TempDir())
	policy := func(istio string) string {
		return "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec:\n  istio:\n" + istio
	}
	kubeconfig := "apiVersion: v1\nkind: Config\ncontexts:\n- {name: production, context: {cluster: a, user: a}}\n" +
		"clusters:\n- {name: a, cluster: {server: 'https://127.0.0.1:1'}}\nusers:\n- {name: a, user: {}}\n"
	writeFiles(t, map[string]string{
		"shop.yaml": initWeb, "kind.yaml": strings.Replace(initWeb, "kind: Deployment", "kind: Deploymnet", 1),
		"native.yaml":     policy("    injector: {builtIn: istio}\n    nativeSidecars: true\n"),
		"text.yaml":       policy("    injector: {builtIn: istio}\n    meshConfig: {enableTracing: true}\n"),
		"indent.yaml":     policy("    injector:\n      builtIn: istio\n     revision: a\n"),
		"values.yaml":     "global: {hub: a}\npilot: {replicaCount: 2}\n",
		"meshconfig.yaml": "accessLogFile: /dev/stdout\ndefaultConfig: {}\n",
		"policies/p.yaml": policy("    injector: {builtIn: istio}\n"),
		"kubeconfig":      kubeconfig, "none/readme.md": "",
		"same/a.yaml": wrongPipeline("", ""), "same/b.yaml": wrongPipeline("", ""),
		"path/p.yaml": strings.Replace(wrongPipeline("", ""), "path: k8s", "path: overlay/eu", 1), "overlays/eu/shop.yaml": initWeb,
	})
	for args, want := range map[string]string{
		"inject --in-place=yes shop.yaml":                                        `invalid argument "yes" for "-i, --in-place" flag; it is true without a value, or false with =false`,
		"inject -p native.yaml shop.yaml":                                        "spec.istio.nativeSidecars: must be one of Auto, Enabled, Disabled, is true",
		"inject -p text.yaml shop.yaml":                                          "spec.istio.meshConfig: must be a string, is a map; to write it as a text, begin it with | after the colon",
		"inject -p indent.yaml shop.yaml":                                        "reading policy indent.yaml: reading InjectionPolicy: line 8: ",
		"inject -p values.yaml shop.yaml":                                        "it is a file with values of Istio's chart and not an InjectionPolicy; import the chart with them: prerig import CHART --values FILE",
		"inject -p meshconfig.yaml shop.yaml":                                    "it is a MeshConfig of Istio and not an InjectionPolicy; give it to prerig import with --meshConfigFile",
		"import values.yaml":                                                     "values of Istio's chart; import the chart with them: prerig import CHART --values FILE",
		"inject -p policies shop.yaml":                                           "reading policy policies: it is a directory; name the file of the policy in it, such as policies/prerig.yaml",
		"inject -p natve.yaml shop.yaml":                                         "no such file, and no built-in policy of that name, did you mean native.yaml?",
		"render --pipelines none --source .":                                     "no pipelines in none; write some with prerig init --source ., or name their directory with --pipelines",
		"render --pipelines same shop":                                           "reading b.yaml: the pipeline shop/shop is in a.yaml already",
		"render --pipelines path --source .":                                     "spec.build.path: reading overlay/eu: file does not exist, did you mean overlays/eu?",
		"review -C shop.yaml":                                                    "reading the repository of -C: shop.yaml is a file; specify the directory of a repository",
		"verify --kubeconfig kubeconfig --context prodution --rendered overlays": `it has no context "prodution", did you mean production?; it has production`,
	} {
		code, _, stderr := command(t, "", strings.Fields(args)...)
		if code != ExitError || !strings.Contains(stderr, want) {
			t.Errorf("prerig %s: exit code %d, want %q\n%s", args, code, want, stderr)
		}
	}
	if _, stderr := ok(t, "", "inject", "kind.yaml"); !strings.Contains(stderr, "Kubernetes has no kind Deploymnet in apps/v1, did you mean Deployment?") {
		t.Error(stderr)
	}
}

// TestKubeconfigThatIsMissing names the file of KUBECONFIG, with and without a context.
func TestKubeconfigThatIsMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.Mkdir("k8s", 0o755))
	must(t, os.WriteFile("k8s/shop.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: shop, namespace: shop}\nspec: {containers: [{name: a, image: a}]}\n"), 0o600))
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "prod.yaml"))
	for _, args := range []string{"verify --rendered k8s", "verify --rendered k8s --context prod"} {
		code, _, stderr := command(t, "", strings.Fields(args)...)
		if want := "prod.yaml, and no such file exists"; code != ExitError || !strings.Contains(stderr, "reading the kubeconfig: KUBECONFIG names ") || !strings.Contains(stderr, want) {
			t.Errorf("prerig %s: exit code %d\n%s", args, code, stderr)
		}
	}
}
