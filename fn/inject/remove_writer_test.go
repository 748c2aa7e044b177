// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import "testing"

// TestRemoveEvidence touches only pods which show that an injection wrote their status annotation.
func TestRemoveEvidence(t *testing.T) {
	testRemovals(t, map[string]removalCase{
		"not injected": {
			alone:    true,
			injected: `{"metadata": {"labels": {"security.istio.io/tlsMode": "istio"}}, "spec": {"containers": [{"name": "a"}, {"name": "istio-proxy"}]}}`,
			want:     `{"metadata": {"labels": {"security.istio.io/tlsMode": "istio"}}, "spec": {"containers": [{"name": "a"}, {"name": "istio-proxy"}]}}`,
		},
		"a status of before lists": {
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "injected-version-root@abc"}}, "spec": {"initContainers": [{"name": "istio-init"}, {"name": "enable-core-dump"}],
				"containers": [{"name": "a"}, {"name": "istio-proxy", "args": ["proxy", "sidecar"]}], "volumes": [{"name": "istio-certs"}]}}`,
			want:    `{"metadata": {}, "spec": {"containers": [{"name": "a"}]}}`,
			assumed: "spec.containers spec.initContainers",
		},
		"a status that lists nothing beside an own istio-proxy": {
			alone:    true,
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "{}"}}, "spec": {"containers": [{"name": "istio-proxy", "image": "mine:1"}, {"name": "a"}]}}`,
			want:     `{"metadata": {"annotations": {"sidecar.istio.io/status": "{}"}}, "spec": {"containers": [{"name": "istio-proxy", "image": "mine:1"}, {"name": "a"}]}}`,
		},
		"a status that is no JSON": {
			alone:    true,
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "yes"}}, "spec": {"containers": [{"name": "istio-proxy", "image": "mine:1"}]}}`,
			want:     `{"metadata": {"annotations": {"sidecar.istio.io/status": "yes"}}, "spec": {"containers": [{"name": "istio-proxy", "image": "mine:1"}]}}`,
		},
		"a status of another pod": {
			alone:    true,
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"containers": [{"name": "a"}]}}`,
			want:     `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"containers": [{"name": "a"}]}}`,
		},
		"a status that is no JSON beside an own istio-proxy with the agent's image": {
			alone:    true,
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "not JSON"}}, "spec": {"containers": [{"name": "istio-proxy", "image": "istio/proxyv2:1.31.1", "securityContext": {"privileged": true}}]}}`,
			want:     `{"metadata": {"annotations": {"sidecar.istio.io/status": "not JSON"}}, "spec": {"containers": [{"name": "istio-proxy", "image": "istio/proxyv2:1.31.1", "securityContext": {"privileged": true}}]}}`,
		},
		"a status that was copied beside an own istio-proxy": {
			alone:    true,
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"containers": [{"name": "istio-proxy", "image": "mine:1", "securityContext": {"privileged": true}}], "volumes": [{"name": "istio-envoy", "hostPath": {"path": "/own"}}]}}`,
			want:     `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"containers": [{"name": "istio-proxy", "image": "mine:1", "securityContext": {"privileged": true}}], "volumes": [{"name": "istio-envoy", "hostPath": {"path": "/own"}}]}}`,
		},
		"a status that lists containers of the user's": {
			alone:    true,
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"version\":\"abc\",\"initContainers\":[\"init0\"],\"containers\":[\"side1\"]}"}}, "spec": {"initContainers": [{"name": "init0"}], "containers": [{"name": "side1"}]}}`,
			want:     `{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"version\":\"abc\",\"initContainers\":[\"init0\"],\"containers\":[\"side1\"]}"}}, "spec": {"initContainers": [{"name": "init0"}], "containers": [{"name": "side1"}]}}`,
		},
		"an own istio-proxy that the template was merged over": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"containers": [{"name": "istio-proxy", "image": "mine:1", "args": ["own"], "env": [{"name": "PROXY_CONFIG", "value": "{}"}]}, {"name": "a"}]}}`,
			want:     `{"metadata": {}, "spec": {"containers": [{"name": "a"}]}}`,
		},
		"volumes of Istio's without a proxy": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"containers": [{"name": "a"}], "volumes": [{"name": "istio-envoy", "emptyDir": {"medium": "Memory"}}]}}`,
			want:     `{"metadata": {}, "spec": {"containers": [{"name": "a"}]}}`,
		},
	})
}
