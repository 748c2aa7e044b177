// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package applied

import (
	"fmt"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/policies"
)

// triggers are the annotations with which a pod asks a built-in policy for its sidecars.
var triggers = map[string]map[string]string{
	"istio":                         {},
	"cloud-sql-operator":            {},
	"cloud-sql-proxy":               {"cloud-sql-proxy.prerig.dev/instances": "project:region:db"},
	"dapr":                          {"dapr.io/enabled": "true", "dapr.io/app-id": "web"},
	"fluent-bit":                    {"fluent-bit.prerig.dev/inject": "true"},
	"linkerd":                       {"linkerd.io/inject": "enabled"},
	"opentelemetry-collector":       {"sidecar.opentelemetry.io/inject": "true"},
	"opentelemetry-instrumentation": {"instrumentation.opentelemetry.io/inject-java": "true", "instrumentation.opentelemetry.io/inject-python": "true"},
	"opentelemetry-sidecar":         {"sidecar.opentelemetry.io/inject": "true"},
	"vault-agent":                   {"vault.hashicorp.com/agent-inject": "true", "vault.hashicorp.com/role": "web", "vault.hashicorp.com/agent-inject-secret-db": "database/creds/web"},
}

// surroundings are objects that policies read beside the workloads.
const surroundings = `apiVersion: cloudsql.cloud.google.com/v1
kind: AuthProxyWorkload
metadata: {name: db, namespace: shop}
spec:
  workloadSelector: {kind: Deployment}
  instances: [{connectionString: "project:region:db", portEnvName: DB_PORT, hostEnvName: DB_HOST}]
---
apiVersion: opentelemetry.io/v1beta1
kind: OpenTelemetryCollector
metadata: {name: agent, namespace: shop}
spec:
  mode: sidecar
  config:
    receivers: {otlp: {protocols: {grpc: {endpoint: "0.0.0.0:4317"}}}}
    exporters: {debug: {}}
    service: {pipelines: {traces: {receivers: [otlp], exporters: [debug]}}}
---
apiVersion: opentelemetry.io/v1alpha1
kind: Instrumentation
metadata: {name: agent, namespace: shop}
spec:
  exporter: {endpoint: "http://collector:4317"}
`

// builtIn returns built-in policies by their names.
func builtIn(names []string, next bool) ([]*v1alpha1.InjectionPolicy, error) {
	var out []*v1alpha1.InjectionPolicy
	for _, name := range names {
		text, ok := policies.Get(name)
		if !ok {
			return nil, fmt.Errorf("reading the built-in policy %s: there is none", name)
		}
		policy, err := v1alpha1.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("reading the built-in policy %s: %w", name, err)
		}
		if next {
			upgradeSidecarVersions(policy)
		}
		out = append(out, policy)
	}
	return out, nil
}

// upgradeSidecarVersions changes the version of the sidecars of a policy.
func upgradeSidecarVersions(policy *v1alpha1.InjectionPolicy) {
	if istio := policy.Spec.Istio; istio != nil {
		overrides := istio.Injector.Overrides
		if overrides == nil {
			overrides = map[string]any{}
		}
		global, _ := overrides["global"].(map[string]any)
		if global == nil {
			global = map[string]any{}
		}
		global["tag"] = "1.31.2"
		overrides["global"] = global
		istio.Injector.Overrides = overrides
	}
	for i := range policy.Spec.Sidecars {
		values := policy.Spec.Sidecars[i].Values
		if image, ok := values["image"].(string); ok {
			name, _, _ := strings.Cut(image, ":")
			values["image"] = name + ":9.9.9"
		}
	}
}
