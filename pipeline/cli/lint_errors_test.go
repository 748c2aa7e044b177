// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

// TestLintSaysOnceThatNamespacesAreMissing: manifests of kustomizations name none, and each would be an error of its own.
func TestLintSaysOnceThatNamespacesAreMissing(t *testing.T) {
	arrange(t)
	writeFiles(t, map[string]string{
		"k8s/a.yaml": deployment("a", ""), "k8s/b.yaml": deployment("b", ""), "k8s/c.yaml": deployment("c", "shop"), "k8s/ns.yaml": namespace("shop", "istio-injection: enabled"),
		"p.yaml": "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: p}\nspec: {unknownNamespace: Fail, istio: {injector: {builtIn: istio}}}\n",
	})
	code, out, stderr := command(t, "", "lint", "-p", "p.yaml", "k8s")
	if code != ExitError || strings.Count(out, "names no namespace") != 1 || !strings.Contains(out, "error: 2 workloads: ") || !strings.Contains(out, "    Deployment b (k8s/b.yaml:6)") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if !strings.Contains(out, "1 pod checked") || !strings.Contains(stderr, "because of 1 error") {
		t.Errorf("counts:\n%s%s", out, stderr)
	}
}

// TestLintDoesNotCountWhatFailed: a workload with an error was not looked at, whatever the error is about.
func TestLintDoesNotCountWhatFailed(t *testing.T) {
	arrange(t)
	writeFiles(t, map[string]string{
		"w.yaml": deployment("a", "shop"),
		"p.yaml": "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: p}\nspec: {images: {pins: {}, onMissing: Fail}, istio: {injector: {builtIn: istio}}}\n",
	})
	code, out, _ := command(t, "", "lint", "-p", "p.yaml", "w.yaml")
	if code != ExitError || !strings.Contains(out, "0 pods checked") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestErrorsInFieldsStayApart: each has its own field and line.
func TestErrorsInFieldsStayApart(t *testing.T) {
	arrange(t)
	for _, name := range []string{"a", "b"} {
		writeFiles(t, map[string]string{name + ".yaml": strings.Replace(deployment(name, "shop"), "image:", "resources: {requests: {cpu: CPU_REQUEST}}, image:", 1)})
	}
	if _, out, _ := command(t, "", "lint", "a.yaml", "b.yaml"); strings.Count(out, "containers[0].resources.requests[cpu]") != 2 {
		t.Errorf("got\n%s", out)
	}
}

// TestAPlaceholderForAQuantityIsNamed with its field and line.
func TestAPlaceholderForAQuantityIsNamed(t *testing.T) {
	arrange(t)
	writeFiles(t, map[string]string{"w.yaml": strings.Replace(deployment("a", "shop"), "image:", "resources: {requests: {cpu: CPU_REQUEST}}, image:", 1)})
	code, out, _ := command(t, "", "lint", "w.yaml")
	const want = `spec.template.spec.containers[0].resources.requests[cpu]: "CPU_REQUEST" is not a quantity such as 100m or 128Mi`
	if code != ExitError || !strings.Contains(out, want) {
		t.Errorf("exit code %d, want %q\n%s", code, want, out)
	}
}

// TestLintTellsOfObjectsThatCannotBeRead: rules would have read them, so it is not known what they would have found.
func TestLintTellsOfObjectsThatCannotBeRead(t *testing.T) {
	arrange(t)
	const policy = "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: p}\nspec: {istio: {injector: {builtIn: istio}}LINT}\n"
	files := map[string]string{
		"k8s/w.yaml":     deployment("a", "shop"),
		"k8s/quota.yaml": "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: shop}\nspec:\n  hard: {pods: 4}\n  hard: {limits.cpu: 4}\n",
		"k8s/map.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: shop}\ndata: {a: b}\ndata: {a: c}\n", // no rule reads it
		"plain.yaml":     strings.Replace(policy, "LINT", "", 1),
		"lints.yaml":     strings.Replace(policy, "LINT", ", lint: {}", 1),
	}
	writeFiles(t, files)
	const want = `error: k8s/quota.yaml:1: ResourceQuota shop/q: decoding k8s/quota.yaml:6: found the key "hard" twice`
	code, out, stderr := command(t, "", "lint", "-p", "plain.yaml", "k8s")
	if code != ExitError || strings.Contains(out, "map.yaml") {
		t.Errorf("exit code %d", code)
	}
	wants(t, out, want, "1 pod checked")
	wants(t, stderr, "because of 1 error")

	if code, _, stderr := command(t, "", "inject", "-p", "plain.yaml", "-i", "k8s"); code != ExitOK || strings.Contains(stderr, "quota") {
		t.Errorf("inject without rules: exit code %d\n%s", code, stderr)
	}
	if code, _, stderr := command(t, "", "inject", "-p", "lints.yaml", "--remove", "-i", "k8s"); code != ExitOK {
		t.Errorf("a removal: exit code %d\n%s", code, stderr)
	}
	if got := tree(t, "k8s")["quota.yaml"]; got != files["k8s/quota.yaml"] {
		t.Errorf("the quota became\n%s", got)
	}
	code, _, stderr = command(t, "", "inject", "-p", "lints.yaml", "-i", "k8s")
	if code != ExitError {
		t.Errorf("inject with rules: exit code %d", code)
	}
	wants(t, stderr, want)
}
