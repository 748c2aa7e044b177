// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import "testing"

// TestRemoveSettings takes out what injections set in the spec of the whole pod.
func TestRemoveSettings(t *testing.T) {
	testRemovals(t, map[string]removalCase{
		"fsGroup of a version that does not tell itself": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"securityContext": {"fsGroup": 1337}}}`,
			want:     `{"metadata": {}, "spec": {"securityContext": {"fsGroup": 1337}}}`, unknown: "spec.securityContext.fsGroup",
		},
		"fsGroup of a version that sets it": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"containers": [{"name": "istio-proxy", "image": "istio/proxyv2:1.12.9"}], "securityContext": {"fsGroup": 1337, "runAsUser": 5}}}`,
			want:     `{"metadata": {}, "spec": {"securityContext": {"runAsUser": 5}}}`, unknown: "spec.securityContext.fsGroup",
		},
		"fsGroup of a version that never sets it": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"containers": [{"name": "istio-proxy", "image": "istio/proxyv2:1.31.1"}], "securityContext": {"fsGroup": 1337}}}`,
			want:     `{"metadata": {}, "spec": {"securityContext": {"fsGroup": 1337}}}`,
		},
		"an empty security context": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"securityContext": {}}}`,
			want:     `{"metadata": {}, "spec": {"securityContext": {}}}`,
		},
		"the sysctl for low ports beside the sidecar template": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"securityContext": {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]}}}`,
			want:     `{"metadata": {}, "spec": {"securityContext": {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]}}}`,
		},
		"the sysctl for low ports of the gateway template": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `, "inject.istio.io/templates": "gateway"}}, "spec": {"securityContext": {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]}}}`,
			want:     `{"metadata": {"annotations": {"inject.istio.io/templates": "gateway"}}, "spec": {}}`, assumed: "spec.securityContext.sysctls metadata.annotations",
		},
		"search domains beside a version that sets none": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"dnsConfig": {"searches": ["global", "corp.global"]}}}`,
			want:     `{"metadata": {}, "spec": {"dnsConfig": {"searches": ["global", "corp.global"]}}}`,
		},
		"search domains of Istio's": {
			injected: `{"metadata": {"annotations": {` + statusOfAppend + `}}, "spec": {"dnsConfig": {"searches": ["global", "shop.global"]}}}`,
			want:     `{"metadata": {}, "spec": {}}`, assumed: "spec.containers spec.initContainers", unknown: "spec.dnsConfig",
		},
		"search domains of others": {
			injected: `{"metadata": {"annotations": {` + statusOfAppend + `}}, "spec": {"dnsConfig": {"searches": ["corp"]}}}`,
			want:     `{"metadata": {}, "spec": {"dnsConfig": {"searches": ["corp"]}}}`, assumed: "spec.containers spec.initContainers", unknown: "spec.dnsConfig",
		},
	})
}
