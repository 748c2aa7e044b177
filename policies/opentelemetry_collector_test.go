// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"strings"
	"testing"
)

// TestCollectorEndpoint: SDKs find the collector by their defaults, whichever protocol they speak, and keep an endpoint of their own where the
// policy gives one.
func TestCollectorEndpoint(t *testing.T) {
	const input = `apiVersion: v1
kind: Pod
metadata: {name: a, annotations: {sidecar.opentelemetry.io/inject: "true"}}
spec:
  containers:
  - {name: grpc, image: a}
  - {name: http, image: a, env: [{name: OTEL_EXPORTER_OTLP_PROTOCOL, value: http/protobuf}]}
  - {name: other, image: a, env: [{name: OTEL_EXPORTER_OTLP_ENDPOINT, value: "https://telemetry.example.com"}]}
  - {name: sourced, image: a, env: [{name: OTEL_EXPORTER_OTLP_ENDPOINT, valueFrom: {configMapKeyRef: {key: endpoint, name: telemetry}}}]}
`
	const set = "{name: OTEL_EXPORTER_OTLP_ENDPOINT, value: http://127.0.0.1:4317}"
	for values, want := range map[string][]string{
		"{}": {"- {name: grpc, image: a}", "env: [{name: OTEL_EXPORTER_OTLP_PROTOCOL, value: http/protobuf}]"},
		"{appEndpoint: 'http://127.0.0.1:4317'}": {"- {name: grpc, image: a, env: [" + set + "]}",
			"env: [" + set + ", {name: OTEL_EXPORTER_OTLP_PROTOCOL, value: http/protobuf}]"},
	} {
		policy := "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: x}\nspec: {sidecars: [{builtIn: opentelemetry-collector, values: " + values + "}]}\n"
		out, difference := injectAndBack(t, []byte(policy), []byte(input), "", "")
		if difference != "" {
			t.Fatal(difference)
		}
		for _, want := range append(want, `- {name: other, image: a, env: [{name: OTEL_EXPORTER_OTLP_ENDPOINT, value: "https://telemetry.example.com"}]}`,
			"- {name: sourced, image: a, env: [{name: OTEL_EXPORTER_OTLP_ENDPOINT, valueFrom: {configMapKeyRef: {key: endpoint, name: telemetry}}}]}") {
			if !strings.Contains(string(out), want+"\n") && !strings.Contains(string(out), want+"}\n") {
				t.Errorf("values %s: no %s in\n%s", values, want, out)
			}
		}
	}
}
