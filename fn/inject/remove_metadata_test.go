// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"testing"
)

// TestRemoveAnnotations takes injected annotations out, and puts the own ones back.
func TestRemoveAnnotations(t *testing.T) {
	testRemovals(t, map[string]removalCase{
		"Prometheus": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `, "prometheus.io/scrape": "true", "prometheus.io/path": "/stats/prometheus", "prometheus.io/port": "15020"}},
				"spec": {"containers": [{"name": "istio-proxy", "args": ["proxy"], "env": [{"name": "ISTIO_PROMETHEUS_ANNOTATIONS", "value": "{\"scrape\":\"true\",\"path\":\"\",\"port\":\"80\"}"}]}]}}`,
			want:    `{"metadata": {"annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "80"}}, "spec": {}}`,
			assumed: "metadata.annotations[prometheus.io/*] metadata.annotations",
		},
		"Prometheus without settings": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `, "prometheus.io/scrape": "true", "prometheus.io/path": "/stats/prometheus", "prometheus.io/port": "15020"}}, "spec": {"containers": [{"name": "istio-proxy", "args": ["proxy"]}]}}`,
			want:     `{"metadata": {}, "spec": {}}`,
			assumed:  "metadata.annotations[prometheus.io/path] metadata.annotations[prometheus.io/port] metadata.annotations[prometheus.io/scrape]",
		},
		"annotations that the proxy was told": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `, "prometheus.io/scrape": "true", "prometheus.io/path": "/stats/prometheus", "prometheus.io/port": "15020", "own": "x", "later": "y"}},
				"spec": {"containers": [{"name": "istio-proxy", "args": ["proxy"], "env": [{"name": "ISTIO_METAJSON_ANNOTATIONS", "value": "{\"own\":\"x\",\"prometheus_io_port\":\"9\",\"prometheus.io/path\":\"/stats/prometheus\"}\n"}]}]}}`,
			want:    `{"metadata": {"annotations": {"own": "x", "later": "y", "prometheus.io/path": "/stats/prometheus", "prometheus_io_port": "9"}}, "spec": {}}`,
			unknown: "metadata.annotations[later]",
		},
		"AppArmor profiles of the configuration": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `, "container.apparmor.security.beta.kubernetes.io/istio-proxy": "runtime/default",
				"container.apparmor.security.beta.kubernetes.io/a": "runtime/default"}}, "spec": {"containers": [{"name": "istio-proxy", "args": ["proxy"]}, {"name": "a"}]}}`,
			want:    `{"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/a": "runtime/default"}}, "spec": {"containers": [{"name": "a"}]}}`,
			assumed: "metadata.annotations[container.apparmor.security.beta.kubernetes.io/istio-proxy] metadata.annotations",
		},
		"CNI": {
			injected: `{"metadata": {"annotations": {` + strings.Replace(statusOfMerge, "istio-init", "istio-validation", 1) + `, "sidecar.istio.io/interceptionMode": "REDIRECT", "traffic.sidecar.istio.io/includeInboundPorts": "80,81",
				"traffic.sidecar.istio.io/excludeInboundPorts": "7,15020", "traffic.sidecar.istio.io/includeOutboundIPRanges": "10.0.0.0/8", "k8s.v1.cni.cncf.io/networks": "own, istio-cni"}},
				"spec": {"initContainers": [{"name": "istio-validation"}], "containers": [{"name": "istio-proxy", "args": ["proxy"]}, {"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 81}, {"containerPort": 82, "protocol": "UDP"}]}]}}`,
			want: `{"metadata": {"annotations": {"traffic.sidecar.istio.io/excludeInboundPorts": "7", "traffic.sidecar.istio.io/includeOutboundIPRanges": "10.0.0.0/8", "k8s.v1.cni.cncf.io/networks": "own"}},
				"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 81}, {"containerPort": 82, "protocol": "UDP"}]}]}}`,
			assumed: "metadata.annotations[sidecar.istio.io/interceptionMode] metadata.annotations[traffic.sidecar.istio.io/excludeInboundPorts] metadata.annotations[traffic.sidecar.istio.io/includeInboundPorts] metadata.annotations",
		},
		"a template of the user's own": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `, "inject.istio.io/templates": "sidecar, mine"}}, "spec": {}}`,
			want:     `{"metadata": {"annotations": {"inject.istio.io/templates": "sidecar, mine"}}, "spec": {}}`,
			unknown:  "metadata", assumed: "metadata.annotations",
		},
		"the revision beside templates that do not set it": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `, "istio.io/rev": "default"}}, "spec": {"containers": [{"name": "istio-proxy", "image": "istio/proxyv2:1.15.7"}]}}`,
			want:     `{"metadata": {"annotations": {"istio.io/rev": "default"}}, "spec": {}}`,
			assumed:  "metadata.annotations",
		},
		"the revision": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `, "istio.io/rev": "default"}}, "spec": {"containers": [{"name": "istio-proxy", "image": "istio/proxyv2:1.31.0"}]}}`,
			want:     `{"metadata": {}, "spec": {}}`,
			assumed:  "metadata.annotations[istio.io/rev]",
		},
	})
}
