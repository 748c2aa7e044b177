// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"testing"
)

// deployment is a workload of a namespace; none where it is empty.
func deployment(name, namespace string) string {
	if namespace != "" {
		namespace = ", namespace: " + namespace
	}
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + namespace + "}\nspec:\n  selector: {matchLabels: {app: " + name + "}}\n  template:\n" +
		"    metadata: {labels: {app: " + name + "}}\n    spec:\n      containers: [{name: app, image: nginx}]\n"
}

// writeFiles writes files of the current directory.
func writeFiles(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if i := strings.LastIndexByte(name, '/'); i > 0 {
			must(t, os.MkdirAll(name[:i], 0o755))
		}
		must(t, os.WriteFile(name, []byte(text), 0o644))
	}
}

func namespace(name, labels string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + ", labels: {" + labels + "}}\n"
}

// TestANamespaceAmongTheFilesDoesNotTurnADecision injects a workload alone and beside the Namespace that it lives in. A
// Namespace counts where it says something about injection, and is named then.
func TestANamespaceAmongTheFilesDoesNotTurnADecision(t *testing.T) {
	const listed = "\n  namespaces:\n  - {name: shop, labels: {istio-injection: enabled}, annotations: {team: shop}}\n"
	for name, tc := range map[string]struct {
		policy, labels string // more of the policy's spec; the Namespace's labels
		injected       bool
		says           string
	}{
		"no label":                            {"", "", true, "the policy sets no namespaces, so all are injected"},
		"labels of others":                    {"", "pod-security.kubernetes.io/enforce: baseline", true, "the policy sets no namespaces, so all are injected"},
		"injected if unknown, no label":       {"\n  unknownNamespace: Inject\n", "", true, "namespace shop has no label about injection (ns.yaml:1)"},
		"the policy lists it, no label":       {listed, "", true, "namespace label istio-injection=enabled"},
		"enabled":                             {"", "istio-injection: enabled", true, "namespace label istio-injection=enabled"},
		"disabled":                            {"", "istio-injection: disabled", false, "namespace shop is labelled istio-injection=disabled"},
		"another revision":                    {"", "istio.io/rev: canary", false, "namespace shop is labelled istio.io/rev=canary"},
		"ambient":                             {"", "istio.io/dataplane-mode: ambient", false, "namespace shop is labelled istio.io/dataplane-mode=ambient"},
		"out of ambient":                      {"", "istio.io/dataplane-mode: none", true, "the policy sets no namespaces, so all are injected"},
		"the policy lists it, disabled":       {listed, "istio-injection: disabled", false, "namespace shop is labelled istio-injection=disabled"},
		"injected if unknown, disabled":       {"\n  unknownNamespace: Inject\n", "istio-injection: disabled", false, "namespace shop is labelled istio-injection=disabled"},
		"skipped if unknown, without a label": {"\n  unknownNamespace: Skip\n", "", false, "namespace shop lacks the label istio-injection=enabled"},
	} {
		t.Run(name, func(t *testing.T) {
			arrange(t)
			writeFiles(t, map[string]string{"d/web.yaml": deployment("web", "shop"), "ns.yaml": namespace("shop", tc.labels)})
			writeFiles(t, map[string]string{"tiny.yaml": strings.TrimRight(readFile(t, "tiny.yaml"), "\n") + tc.policy})
			alone, _ := ok(t, "", "inject", "-p", "tiny.yaml", "d")
			writeFiles(t, map[string]string{"web.yaml": alone}) // what one run gives is right for the other
			code, _, problems := command(t, "", "inject", "-p", "tiny.yaml", "ns.yaml", "--check", "web.yaml")
			_, told := ok(t, "", "inject", "-p", "tiny.yaml", "ns.yaml", "d")
			if strings.Contains(told, "1 injected") != tc.injected || !strings.Contains(told, tc.says) {
				t.Errorf("beside its Namespace:\n%s", told)
			}
			if explicit := strings.Contains(tc.says, "is labelled"); !explicit && code != ExitOK {
				t.Errorf("alone it is decided otherwise: %s", problems)
			}
		})
	}
}

// TestNamespacesOfOneName: a repository for several clusters has a Namespace many times.
func TestNamespacesOfOneName(t *testing.T) {
	for name, tc := range map[string]struct {
		one, other string
		code       int
		says       []string
	}{
		"equal":                  {"istio-injection: enabled", "istio-injection: enabled", ExitOK, []string{"2 injected"}},
		"an unrelated label":     {"istio-injection: enabled, team: a", "istio-injection: enabled, team: b", ExitOK, []string{"2 injected"}},
		"one says nothing":       {"istio-injection: enabled", "", ExitOK, []string{"2 injected"}},
		"labels that decide":     {"istio-injection: enabled", "istio-injection: disabled", ExitError, []string{"Deployment shop/web", "clusters/a/ns.yaml:1", "clusters/b/ns.yaml:1", "istio-injection=disabled"}},
		"of nobody's namespace":  {"istio-injection: enabled", "istio-injection: disabled", ExitOK, []string{"1 injected"}},
		"of another one's alone": {"istio-injection: enabled", "istio-injection: disabled", ExitError, []string{"Deployment shop/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			arrange(t)
			writeFiles(t, map[string]string{
				"clusters/a/ns.yaml": namespace("shop", tc.one), "clusters/b/ns.yaml": namespace("shop", tc.other),
				"clusters/app/web.yaml": deployment("web", "shop"), "clusters/app/other.yaml": deployment("other", "elsewhere"),
			})
			if strings.Contains(name, "nobody") {
				must(t, os.Remove("clusters/app/web.yaml"))
			}
			code, _, stderr := command(t, "", "inject", "-p", "tiny.yaml", "clusters")
			for _, want := range tc.says {
				if !strings.Contains(stderr, want) {
					t.Errorf("it does not say %q", want)
				}
			}
			if code != tc.code || strings.Contains(stderr, "error: clusters/app/other.yaml") || strings.Contains(stderr, "ns.yaml:1: Namespace") {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
		})
	}
}

// TestAGuessedNamespaceIsSaidOnce, whatever the number of workloads, also with --quiet, and not where it is given.
func TestAGuessedNamespaceIsSaidOnce(t *testing.T) {
	arrange(t)
	writeFiles(t, map[string]string{"k8s/a.yaml": deployment("a", ""), "k8s/b.yaml": deployment("b", ""), "k8s/c.yaml": deployment("c", ""), "k8s/d.yaml": deployment("d", "shop")})
	_, stderr := ok(t, "", "inject", "-q", "-p", "tiny.yaml", "k8s")
	const want = "warning: Deployment a and 2 other workloads name no namespace, so default is written for the proxy; if it is another one, set it in the manifest or as defaultNamespace in the policy's spec, or with -n NAMESPACE of prerig inject\n"
	if !strings.Contains(stderr, want) || strings.Count(stderr, "names no namespace")+strings.Count(stderr, "name no namespace") != 1 {
		t.Errorf("got\n%s", stderr)
	}
	if _, stderr := ok(t, "", "inject", "-q", "-n", "shop", "-p", "tiny.yaml", "k8s"); strings.Contains(stderr, "no namespace") {
		t.Errorf("with -n:\n%s", stderr)
	}
}
