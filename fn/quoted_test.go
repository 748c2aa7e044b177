// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn"
)

// TestValuesOfAnnotationsAreNotQuotedWhole has one workload for each annotation that is read, with a value that is
// large, wrong and could be a secret.
func TestValuesOfAnnotationsAreNotQuotedWhole(t *testing.T) {
	names := []string{
		"inject.istio.io/templates", "prometheus.io/path", "prometheus.io/port", "prometheus.io/scrape", "proxy.istio.io/config",
		"proxy.istio.io/overrides", "readiness.status.sidecar.istio.io/applicationPorts",
		"readiness.status.sidecar.istio.io/failureThreshold", "readiness.status.sidecar.istio.io/initialDelaySeconds",
		"sidecar.istio.io/agentLogLevel", "sidecar.istio.io/bootstrapOverride", "sidecar.istio.io/extraStatTags", "sidecar.istio.io/inject",
		"sidecar.istio.io/interceptionMode", "sidecar.istio.io/logLevel", "sidecar.istio.io/nativeSidecar", "sidecar.istio.io/proxyCPU",
		"sidecar.istio.io/proxyCPULimit", "sidecar.istio.io/proxyImage", "sidecar.istio.io/proxyImageType", "sidecar.istio.io/proxyMemory",
		"sidecar.istio.io/rewriteAppHTTPProbers", "sidecar.istio.io/status", "sidecar.istio.io/userVolume", "sidecar.istio.io/userVolumeMount",
		"status.sidecar.istio.io/port", "traffic.sidecar.istio.io/excludeInboundPorts", "traffic.sidecar.istio.io/excludeInterfaces",
		"traffic.sidecar.istio.io/excludeOutboundIPRanges", "traffic.sidecar.istio.io/excludeOutboundPorts",
		"traffic.sidecar.istio.io/includeInboundPorts", "traffic.sidecar.istio.io/includeOutboundIPRanges",
		"traffic.sidecar.istio.io/includeOutboundPorts", "traffic.sidecar.istio.io/kubevirtInterfaces",
	}
	for kind, value := range map[string]string{"text": strings.Repeat("zq", 20_000), "JSON": "{\"a\": [" + strings.Repeat("'zq',", 10_000)} {
		var in strings.Builder
		in.WriteString("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n  apiVersion: prerig.dev/v1alpha1\n  kind: InjectionPolicy\n" +
			"  metadata: {name: mesh}\n  spec: {istio: {injector: {builtIn: istio}}, lint: {}}\nitems:\n")
		for i, name := range names {
			fmt.Fprintf(&in, "- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web-%d, namespace: shop}, spec: {selector: {matchLabels: {app: web}}, "+
				"template: {metadata: {labels: {app: web}, annotations: {%s: %q}}, spec: {containers: [{name: web, image: web}]}}}}\n", i, name, value)
		}
		var out, stderr bytes.Buffer
		if err := fn.Execute(t.Context(), strings.NewReader(in.String()), &out, &stderr); err == nil {
			t.Errorf("%s: nothing is wrong", kind)
		}
		if !strings.Contains(stderr.String(), "prometheus.io/port") {
			t.Errorf("%s: got %.2000s", kind, stderr.String())
		}
		for line := range strings.Lines(stderr.String()) {
			if len(line) > 1500 {
				t.Errorf("%s: a message has %d bytes: %.300s", kind, len(line), line)
			}
		}
	}
}
