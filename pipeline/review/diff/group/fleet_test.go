// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn"
	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
)

// workload is one of five shapes: they differ in kind, containers, ports, probes and namespace.
func workload(i int) string {
	name := fmt.Sprintf("%s-%04d", []string{"cart", "web", "mail"}[i%3], i)
	pod := func(indent, containers string) string {
		text := fmt.Sprintf("template:\n  metadata: {labels: {app: %s, sidecar.istio.io/inject: \"true\"}}\n  spec:\n    containers:\n%s", name, containers)
		return indent + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+indent) + "\n"
	}
	head := func(api, kind, namespace string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: %s}\nspec:\n", api, kind, name, namespace)
	}
	selector := "  selector: {matchLabels: {app: " + name + "}}\n"
	switch i % 5 {
	case 0:
		return head("apps/v1", "Deployment", "shop") + selector + pod("  ", fmt.Sprintf("    - {name: app, image: \"a:%d\", ports: [{containerPort: 8080}]}\n", i))
	case 1:
		return head("apps/v1", "Deployment", "shop") + selector + pod("  ", fmt.Sprintf("    - {name: %s, image: \"a:%d\", ports: [{containerPort: %d}, {containerPort: 9090}]}\n", name, i, 8000+i%20))
	case 2:
		return head("apps/v1", "StatefulSet", "data") + selector + "  serviceName: db\n" + pod("  ",
			fmt.Sprintf("    - {name: db, image: \"a:%d\"}\n    - {name: exporter, image: b, ports: [{containerPort: %d}], livenessProbe: {httpGet: {path: /live, port: %[2]d}}}\n", i, 7000+i%20))
	case 3:
		return head("batch/v1", "CronJob", "shop") + "  schedule: \"* * * * *\"\n  jobTemplate:\n    spec:\n" +
			strings.Replace(pod("      ", fmt.Sprintf("    - {name: job, image: \"a:%d\"}\n", i)), "spec:\n", "spec:\n          restartPolicy: Never\n", 1)
	}
	return head("apps/v1", "Deployment", "shop") + selector + pod("  ", fmt.Sprintf("    - {name: main, image: \"a:%d\", ports: [{name: http, containerPort: 8080}]}\n    volumes: [{name: cfg, configMap: {name: %s}}]\n", i, name))
}

// fleet returns the rendered files of n workloads under a policy.
func fleet(t *testing.T, n int, policy string) []map[string][]byte {
	t.Helper()
	p, err := policyv1alpha1.Parse([]byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec:\n" + policy))
	if err != nil {
		t.Fatal(err)
	}
	injector, err := fn.New([]*policyv1alpha1.InjectionPolicy{p})
	if err != nil {
		t.Fatal(err)
	}
	var items []fn.Item
	for i := range n {
		file, err := manifest.Parse("f.yaml", []byte(workload(i)))
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, fn.Item{Doc: file.Docs[0], Index: i})
	}
	report, err := injector.Run(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string][]byte
	for _, item := range report.Items {
		value, err := manifest.Decode(item.Doc.Raw())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, map[string][]byte{"f.yaml": manifest.Marshal(value)})
	}
	return out
}

// TestAnUpgradeReadsAsAHandful: many workloads of five shapes, and what a mesh's operator does to them.
func TestAnUpgradeReadsAsAHandful(t *testing.T) {
	const n = 200
	policy := func(settings, overrides string) string {
		return "  istio: {injector: {builtIn: istio, overrides: {global: {" + overrides + "}}}" + settings + "}\n"
	}
	old := fleet(t, n, policy("", "tag: 1.29.0"))
	none := fleet(t, n, "  mode: Remove\n  istio: {injector: {builtIn: istio}}\n")
	for name, tc := range map[string]struct {
		before, after []map[string][]byte
		most          int // changes, however many workloads there are
	}{
		"an upgrade":                  {old, fleet(t, n, policy("", "tag: 1.29.1")), 1},
		"an upgrade with settings":    {old, fleet(t, n, policy("", "tag: 1.30.0, proxy: {logLevel: debug, resources: {limits: {cpu: 3000m}}}")), 1},
		"native sidecars switched on": {fleet(t, n, policy(", nativeSidecars: Disabled", "tag: 1.29.0")), fleet(t, n, policy(", nativeSidecars: Enabled", "tag: 1.29.0")), 6},
		"the first injection":         {none, old, 10},
		"the last one":                {old, none, 10},
	} {
		t.Run(name, func(t *testing.T) {
			var units []*Unit
			for i := range n {
				found, _ := Compare(tc.before[i], tc.after[i])
				for _, u := range found {
					u.Pipeline, u.Target = fmt.Sprint(i), "t"
				}
				units = append(units, found...)
			}
			got := Changes(units)
			objects := map[string]bool{}
			for _, c := range got {
				for _, o := range c.Objects {
					objects[o.Pipeline] = true
				}
			}
			if len(got) > tc.most || len(got) == 0 || len(objects) != n {
				t.Errorf("%d objects read as %d changes", len(objects), len(got))
				for _, text := range brief(got) {
					t.Logf("%.300s", text[max(0, strings.Index(text, "|")):])
				}
			}
			t.Logf("%d changes", len(got))
		})
	}
}
