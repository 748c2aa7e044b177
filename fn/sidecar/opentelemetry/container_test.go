// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package opentelemetry_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/sidecar/opentelemetry"
)

// TestReadCollectorErrors: what is refused says its place. What is read is compared with the operator in the tests of the policy
// opentelemetry-sidecar.
func TestReadCollectorErrors(t *testing.T) {
	t.Parallel()
	const base = "receivers: {otlp: {}}, exporters: {debug: {}}"
	for name, tc := range map[string]struct{ spec, want string }{
		"text":              {"{config: 'receivers: {}'}", "config is not a map; a text is what v1alpha1 has"},
		"unknown section":   {"{config: {" + base + ", service: {pipelines: {}}, others: {}}}", "config.others is not a field"},
		"no service":        {"{config: {" + base + "}}", "config.service is missing"},
		"unknown service":   {"{config: {" + base + ", service: {pipelines: {}, other: {}}}}", "config.service.other is not a field"},
		"unknown pipeline":  {"{config: {" + base + ", service: {pipelines: {traces: {receivers2: []}}}}}", "config.service.pipelines.traces.receivers2 is not one of"},
		"no list":           {"{config: {" + base + ", service: {pipelines: {traces: {receivers: otlp}}}}}", "config.service.pipelines.traces.receivers is not a list"},
		"unknown protocol":  {"{config: {receivers: {otlp: {protocols: {tcp: {}}}}, exporters: {}, service: {pipelines: {traces: {receivers: [otlp]}}}}}", "config.receivers.otlp.protocols.tcp: unknown protocol"},
		"endpoint":          {"{config: {receivers: {zipkin: {endpoint: 9411}}, exporters: {}, service: {pipelines: {traces: {receivers: [zipkin]}}}}}", "config.receivers.zipkin.endpoint is not a string"},
		"two health checks": {"{config: {" + base + ", extensions: {health_check: {}, health_check/2: {}}, service: {extensions: [health_check, health_check/2], pipelines: {}}}}", "two of health_check"},
		"port name":         {"{config: {receivers: {otlp/A: {protocols: {grpc: {}}}}, exporters: {}, service: {pipelines: {traces: {receivers: [otlp/A]}}}}}", `the name "otlp-A-grpc" is refused`},
		"metrics address":   {"{config: {" + base + ", service: {pipelines: {}, telemetry: {metrics: {address: '${env:ADDRESS}'}}}}}", "has no port in figures"},
		"ports":             {"{ports: [{name: a}], config: {" + base + ", service: {pipelines: {}}}}", "ports[0] has no name or no port"},
		"two ports":         {"{ports: [{name: a, port: 1}, {name: a, port: 2}], config: {" + base + ", service: {pipelines: {}}}}", "two ports with the name a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, err := manifest.Decode([]byte(tc.spec))
			if err != nil {
				t.Fatal(err)
			}
			if _, err = opentelemetry.ReadCollector(spec.(map[string]any)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, without %q", err, tc.want)
			}
		})
	}
}
