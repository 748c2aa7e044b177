// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import "testing"

// TestRemoveLabels takes injected labels out, and leaves those that may be the pod's own.
func TestRemoveLabels(t *testing.T) {
	testRemovals(t, map[string]removalCase{
		"labels": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `, "istio.io/rev": "default"}, "labels": {"app": "web", "version": "v1", "security.istio.io/tlsMode": "istio", "service.istio.io/canonical-name": "web",
				"service.istio.io/canonical-revision": "v1", "istio.io/rev": "canary"}}, "spec": {"containers": [{"name": "istio-proxy", "args": ["proxy"]}]}}`,
			want:    `{"metadata": {"labels": {"app": "web", "version": "v1", "istio.io/rev": "canary"}}, "spec": {}}`,
			assumed: "metadata.annotations[istio.io/rev] metadata.labels[security.istio.io/tlsMode] metadata.labels[service.istio.io/canonical-revision] metadata.labels[service.istio.io/canonical-name]",
		},
		"labels of the user": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}, "labels": {"app": "web", "security.istio.io/tlsMode": "disabled", "service.istio.io/canonical-name": "shop", "service.istio.io/canonical-revision": "blue"}}, "spec": {}}`,
			want:     `{"metadata": {"labels": {"app": "web", "security.istio.io/tlsMode": "disabled", "service.istio.io/canonical-name": "shop", "service.istio.io/canonical-revision": "blue"}}, "spec": {}}`,
			unknown:  "metadata.labels[service.istio.io/canonical-revision] metadata.labels[service.istio.io/canonical-name]",
		},
		"the name of the workload": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}, "labels": {"service.istio.io/canonical-name": "web-deployment", "service.istio.io/canonical-revision": "latest"}}, "spec": {}}`,
			want:     `{"metadata": {}, "spec": {}}`,
			assumed:  "metadata.labels[service.istio.io/canonical-revision] metadata.labels[service.istio.io/canonical-name]",
		},
		"network and revision labels": {
			injected: `{"metadata": {"annotations": {` + statusOfAppend + `}, "labels": {"topology.istio.io/network": "n1", "istio.io/rev": "canary"}},
				"spec": {"containers": [{"name": "istio-proxy", "args": ["proxy"], "env": [{"name": "ISTIO_META_NETWORK", "value": "n1"}]}]}}`,
			want:    `{"metadata": {"labels": {"topology.istio.io/network": "n1"}}, "spec": {}}`,
			unknown: "metadata.labels[topology.istio.io/network] metadata.labels[istio.io/rev]",
			assumed: "spec.containers spec.initContainers",
		},
		"a revision label of 1.9": {
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"containers\":[\"istio-proxy\"]}"}, "labels": {"istio.io/rev": "canary"}}, "spec": {}}`,
			want:     `{"metadata": {"labels": {"istio.io/rev": "canary"}}, "spec": {}}`,
			unknown:  "metadata.labels[istio.io/rev]",
		},
		"an empty label that injection fills": {
			injected: `{"metadata": {"annotations": {` + statusOfAppend + `}, "labels": {"app": "web", "security.istio.io/tlsMode": "istio", "service.istio.io/canonical-name": "web"}},
				"spec": {"containers": [{"name": "istio-proxy", "args": ["proxy"], "env": [{"name": "ISTIO_METAJSON_LABELS", "value": "{\"app\":\"web\",\"security.istio.io/tlsMode\":\"\"}\n"}]}]}}`,
			want:    `{"metadata": {"labels": {"app": "web", "security.istio.io/tlsMode": ""}}, "spec": {}}`,
			assumed: "spec.containers spec.initContainers metadata.labels[security.istio.io/tlsMode]",
		},
	})
}
