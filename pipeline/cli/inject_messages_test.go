// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestAPolicyImportedFromAChartWorksAtOnce, although a chart says nothing about namespaces.
func TestAPolicyImportedFromAChartWorksAtOnce(t *testing.T) {
	chart, err := filepath.Abs("importer/testdata/cases/chart/input.yaml")
	must(t, err)
	arrange(t)
	writeFiles(t, map[string]string{"k8s/web.yaml": deployment("web", "shop"), "k8s/ns.yaml": namespace("shop", "team: shop")})
	ok(t, readFile(t, chart), "import", "--to", "prerig.yaml")
	out, _ := ok(t, "", "inject", "k8s/web.yaml")
	if !strings.Contains(out, "istio-proxy") {
		t.Errorf("not injected:\n%s", out)
	}
	if both, _ := ok(t, "", "inject", "k8s"); !strings.Contains(both, strings.TrimPrefix(out, "---\n")) {
		t.Errorf("with its Namespace it is another pod:\n%s", both)
	}
	policy := readFile(t, "prerig.yaml")
	for _, want := range []string{"unknownNamespace: Inject\n", "#   - {name: shop, labels: {istio-injection: enabled}}\n", `config.kubernetes.io/local-config: "true"`} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy has no %q:\n%.600s", want, policy)
		}
	}
}

// TestTheFirstMistakes have a message that says what to do.
func TestTheFirstMistakes(t *testing.T) {
	const head = "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: p}\nspec: "
	istio := func(more string) string { return head + "{" + more + "istio: {injector: {builtIn: istio}}}\n" }
	for name, tc := range map[string]struct{ policy, workload, want string }{
		"the tag beside istio":    {head + "{tag: 1.30.2, istio: {injector: {builtIn: istio}}}\n", deployment("a", "b"), "spec.tag: unknown field; it is written as spec.istio.injector.overrides.global.tag"},
		"the tag in istio":        {head + "{istio: {tag: 1.30.2, injector: {builtIn: istio}}}\n", deployment("a", "b"), "spec.istio.tag: unknown field; it is written as spec.istio.injector.overrides.global.tag"},
		"the hub in the injector": {head + "{istio: {injector: {builtIn: istio, hub: h}}}\n", deployment("a", "b"), "spec.istio.injector.hub: unknown field; it is written as spec.istio.injector.overrides.global.hub"},
		"a namespace not listed":  {istio("namespaces: [{name: a}], "), deployment("a", "shop"), "the labels of namespace shop are not known; add namespaces: [{name: shop, labels: {istio-injection: enabled}}], or unknownNamespace: Inject (or Skip), to the policy's spec"},
		"no namespace":            {istio("namespaces: [{name: a}], "), deployment("a", ""), "the workload names no namespace; give it with -n NAMESPACE, or add defaultNamespace: NAMESPACE, or unknownNamespace: Inject (or Skip), to the policy's spec"},
		"a namespace of YAML 1.1": {istio(""), deployment("a", "n"), "Deployment a metadata.namespace: it has to be a string and is the bool false; put it in quotes"},
		"a number for a namespace": {istio(""), deployment("a", "123"),
			"Deployment a metadata.namespace: it has to be a string and is the number 123; put it in quotes"},
		"a number for a name": {istio(""), strings.Replace(deployment("web", "shop"), "{name: web,", "{name: 123,", 1), "metadata.name: it has to be a string and is the number 123; put it in quotes"},
		"no kind":             {"spec: {}\n", deployment("a", "b"), "apiVersion: is missing; it must be prerig.dev/v1alpha1"},
	} {
		t.Run(name, func(t *testing.T) {
			arrange(t)
			writeFiles(t, map[string]string{"p.yaml": tc.policy, "w.yaml": tc.workload})
			code, out, stderr := command(t, "", "inject", "-p", "p.yaml", "w.yaml")
			if code != ExitError || out != "" || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d, want %q\n%s", code, tc.want, stderr)
			}
		})
	}
}

// TestLintOfNothingIsNoSuccess: a wrong path in CI would be green for ever.
func TestLintOfNothingIsNoSuccess(t *testing.T) {
	arrange(t)
	writeFiles(t, map[string]string{"d/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"})
	for _, args := range [][]string{{"lint", "d"}, {"lint", "--as-is", "d"}, {"lint", "-o", "json", "d"}} {
		if code, _, stderr := command(t, "", args...); code != ExitError || !strings.Contains(stderr, "error: no workload was found, so nothing was checked") {
			t.Errorf("%v: exit code %d\n%s", args, code, stderr)
		}
		ok(t, "", append(args, "--allow-empty")...)
	}
	for _, args := range [][]string{{"lint", "--fail-on=never", "web.yaml"}, {"lint", "--fail-on=never", "--as-is", "web.yaml"}} {
		if out, _ := ok(t, "", args...); !strings.Contains(out, "1 pod checked, ") {
			t.Errorf("%v:\n%s", args, out)
		}
	}
}

// TestManyWorkloadsWithOneReason are told once, so that what differs is seen.
func TestManyWorkloadsWithOneReason(t *testing.T) {
	arrange(t)
	var many strings.Builder
	for i := range 50 {
		many.WriteString("---\n" + deployment(fmt.Sprintf("web-%d", i), "shop"))
	}
	many.WriteString("---\napiVersion: v1\nkind: Pod\nmetadata: {name: other, namespace: shop, labels: {sidecar.istio.io/inject: \"false\"}}\nspec: {containers: [{name: a, image: b}]}\n")
	writeFiles(t, map[string]string{"many.yaml": many.String()})
	_, stderr := ok(t, "", "inject", "-p", "tiny.yaml", "many.yaml")
	for _, want := range []string{"info: 50 workloads: injected: the policy sets no namespaces, so all are injected, and the pod does not opt out (-v lists them)\n", "Pod shop/other: skipped: ", "50 injected, 1 skipped\n"} {
		if strings.Count(stderr, want) != 1 {
			t.Errorf("it does not say %q:\n%s", want, stderr)
		}
	}
	if strings.Count(stderr, "\n") > 8 {
		t.Errorf("%d lines:\n%s", strings.Count(stderr, "\n"), stderr)
	}
	if _, stderr := ok(t, "", "inject", "-v", "-p", "tiny.yaml", "many.yaml"); strings.Count(stderr, "info: many.yaml:") != 51 {
		t.Errorf("with -v:\n%s", stderr)
	}
}

// TestASkippedSidecarSaysWhatAsksForIt for each of those that come with Prerig and wait to be asked.
func TestASkippedSidecarSaysWhatAsksForIt(t *testing.T) {
	arrange(t)
	for name, want := range map[string]string{
		"linkerd":                 "the annotation linkerd.io/inject: enabled on the pod would ask for it",
		"dapr":                    "the annotation dapr.io/enabled: ",
		"vault-agent":             "the annotation vault.hashicorp.com/agent-inject: ",
		"opentelemetry-collector": "the annotation sidecar.opentelemetry.io/inject on the pod would ask for it",
	} {
		if _, stderr := ok(t, "", "inject", "-p", name, "web.yaml"); !strings.Contains(stderr, want) {
			t.Errorf("%s does not say %q:\n%s", name, want, stderr)
		}
	}
}

// TestTheTemplatesOfTheBuiltInPolicy: those that Istio's own charts and samples ask for are there.
func TestTheTemplatesOfTheBuiltInPolicy(t *testing.T) {
	for name, want := range map[string]string{"gateway": "- router", "grpc-agent": "GRPC_XDS_BOOTSTRAP", "grpc-simple": "grpc-bootstrap-init"} {
		input := readFile(t, filepath.Join("../../policies/testdata/istio", map[string]string{"grpc-agent": "grpc"}[name]+strings.TrimPrefix(name, "grpc-agent")+".input.yaml"))
		if out, _ := ok(t, input, "inject", "-p", "istio"); !strings.Contains(out, want) {
			t.Errorf("%s:\n%s", name, out)
		}
		other := strings.ReplaceAll(input, "inject.istio.io/templates: "+name, "inject.istio.io/templates: waypoint")
		code, _, stderr := command(t, other, "inject", "-p", "istio")
		if code != ExitError || !strings.Contains(stderr, `"waypoint" is not among the templates of the injector's configuration, which are gateway, grpc-agent, grpc-simple, sidecar; prerig import takes a mesh's own into the policy`) {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
	}
}
