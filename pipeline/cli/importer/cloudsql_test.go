// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

const authProxyWorkloads = `
apiVersion: cloudsql.cloud.google.com/v1
kind: AuthProxyWorkload
metadata: {name: orders, namespace: shop, generation: 2, uid: x, labels: {a: b}}
spec:
  workloadSelector: {kind: Deployment, name: orders}
  instances: [{connectionString: "p:r:orders"}]
status: {conditions: []}
---
apiVersion: cloudsql.cloud.google.com/v1
kind: AuthProxyWorkload
metadata: {name: deleted, namespace: shop, deletionTimestamp: "2026-01-01T00:00:00Z"}
spec: {workloadSelector: {kind: Deployment}, instances: []}
---
apiVersion: cloudsql.cloud.google.com/v1
kind: AuthProxyWorkload
metadata: {name: empty, namespace: shop}
spec:
---
apiVersion: example.com/v1
kind: AuthProxyWorkload
metadata: {name: others, namespace: shop}
`

// TestCloudSQLObjects: what decides of the objects gets into the policy, and nothing of those that the operator does not read.
func TestCloudSQLObjects(t *testing.T) {
	t.Parallel()
	_, imp, err := imported(clusterObjects(t, authProxyWorkloads), Options{})
	must(t, err)
	want := []v1alpha1.Sidecar{{BuiltIn: "cloud-sql-operator", Values: map[string]any{"workloads": []any{map[string]any{
		"metadata": map[string]any{"name": "orders", "namespace": "shop", "generation": int64(2)},
		"spec": map[string]any{"workloadSelector": map[string]any{"kind": "Deployment", "name": "orders"},
			"instances": []any{map[string]any{"connectionString": "p:r:orders"}}},
	}}}}}
	if d := cmp.Diff(want, imp.Policy.Spec.Sidecars); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if imp.Policy.Metadata.Name != "cloud-sql-operator" || imp.From != "1 AuthProxyWorkload; 0 namespaces" ||
		len(imp.Warnings) != 1 || !strings.Contains(imp.Warnings[0], "AuthProxyWorkload shop/empty (cluster.yaml:15) has no spec.workloadSelector") {
		t.Errorf("name %s, from %q, warnings %q", imp.Policy.Metadata.Name, imp.From, imp.Warnings)
	}
	if notes := strings.Join(imp.Notes, "\n"); !strings.Contains(notes, "pods are those of 1.8.1") {
		t.Errorf("the notes do not say the version: %s", notes)
	}
}

// TestCloudSQLVersion: an operator of another version has another proxy, which its objects do not say.
func TestCloudSQLVersion(t *testing.T) {
	t.Parallel()
	for tag, warned := range map[string]bool{"1.8.1": false, "1.8.1@sha256:0": false, "1.7.0": true} {
		deployment := "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: operator, namespace: sql}\n" +
			"spec: {template: {spec: {containers: [{name: manager, image: \"gcr.io/cloud-sql-connectors/cloud-sql-operator/cloud-sql-proxy-operator:" + tag + "\"}]}}}\n"
		_, imp, err := imported(clusterObjects(t, authProxyWorkloads+deployment), Options{})
		must(t, err)
		agent := imp.Policy.Spec.Sidecars[0].Values["userAgent"]
		if said := strings.Contains(strings.Join(imp.Warnings, "\n"), "set image in the values"); said != warned || (agent == "cloud-sql-proxy-operator/"+tag) != warned {
			t.Errorf("%s: warnings %q, user agent %v", tag, imp.Warnings, agent)
		}
	}
}
