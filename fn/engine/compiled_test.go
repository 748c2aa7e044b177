// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/engine"
	"github.com/prerig/prerig/fn/manifest"
)

// TestRunsDoNotDependOnEarlierOnes: what one run reads out of its items is not what the next one has.
func TestRunsDoNotDependOnEarlierOnes(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\nspec:\n  containers:\n  - {name: a, image: a}\n"
	mesh := func(domain string) string {
		return pod + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\ndata:\n  mesh: |\n    trustDomain: " + domain + "\n"
	}
	proxy := pod + "---\napiVersion: networking.istio.io/v1beta1\nkind: ProxyConfig\nmetadata: {name: p, namespace: istio-system}\nspec: {concurrency: 7}\n"
	policy := func() *engine.Injector {
		p, err := v1alpha1.Parse([]byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec:\n" +
			"  istio:\n    version: \"1.31\"\n    injector:\n      values: '{\"global\": {}}'\n      config: |\n        policy: enabled\n        defaultTemplates: [sidecar]\n        templates:\n          sidecar: |\n" +
			"            spec:\n              containers:\n              - {name: istio-proxy, image: proxy, env: [{name: A, value: \"{{ .MeshConfig.TrustDomain }} {{ .ProxyConfig.Concurrency }}\"}]}\n" +
			"  namespaces:\n  - {name: shop, labels: {istio-injection: enabled}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		in, err := engine.New([]*v1alpha1.InjectionPolicy{p})
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	run := func(in *engine.Injector, text string) string {
		return string(runStream(t, in, text).Items[0].Doc.Raw())
	}
	one := policy()
	different := map[string]bool{}
	for i, text := range []string{pod, mesh("one"), mesh("one"), mesh("two"), proxy, pod, mesh("one"), proxy, pod} {
		got := run(one, text)
		if want := run(policy(), text); got != want {
			t.Errorf("run %d is another one:\n%s\nwant\n%s", i, got, want)
		}
		different[got] = true
	}
	if len(different) != 4 {
		t.Errorf("%d results are different: the test tells nothing", len(different))
	}
}

// runStream runs an injector over the documents of a stream, and fails where it reports an error.
func runStream(t *testing.T, in *engine.Injector, stream string) *engine.Report {
	t.Helper()
	file, err := manifest.Parse("", []byte(stream))
	if err != nil {
		t.Fatal(err)
	}
	var items []engine.Item
	for _, doc := range file.Docs {
		items = append(items, engine.Item{Doc: doc})
	}
	report, err := in.Run(t.Context(), items)
	if err != nil || report.Failed() {
		t.Fatal(err, report.Results)
	}
	return report
}
