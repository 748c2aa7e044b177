// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import "testing"

// TestRemoveVolumes takes injected volumes out, and leaves what is not Istio's.
func TestRemoveVolumes(t *testing.T) {
	testRemovals(t, map[string]removalCase{
		"a volume that is still mounted": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"containers": [{"name": "istio-proxy", "args": ["proxy"]}, {"name": "a", "volumeMounts": [{"name": "istio-envoy"}]}],
				"volumes": [{"name": "istio-envoy"}]}}`,
			want:    `{"metadata": {}, "spec": {"containers": [{"name": "a", "volumeMounts": [{"name": "istio-envoy"}]}], "volumes": [{"name": "istio-envoy"}]}}`,
			unknown: "spec.volumes[istio-envoy]",
		},
		"a volume of the pod's own that Istio's was merged over": {
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"containers\":[\"istio-proxy\"],\"volumes\":[\"istio-data\",\"istio-envoy\",\"istio-token\"]}"}}, "spec": {"containers": [{"name": "istio-proxy", "args": ["proxy"]}, {"name": "a"}],
				"volumes": [{"name": "istio-data", "hostPath": {"path": "/own"}, "emptyDir": {}}, {"name": "istio-envoy", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}, {"name": "istio-token", "projected": {"sources": []}}]}}`,
			want:    `{"metadata": {}, "spec": {"containers": [{"name": "a"}], "volumes": [{"name": "istio-data", "hostPath": {"path": "/own"}}, {"name": "istio-envoy", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]}}`,
			unknown: "spec.volumes[istio-data] spec.volumes[istio-envoy]",
		},
		"an empty directory of the pod's own where Istio's template writes none": {
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"containers\":[\"istio-proxy\"],\"volumes\":[\"workload-socket\",\"credential-socket\"]}"}},
				"spec": {"volumes": [{"name": "workload-socket"}, {"name": "credential-socket", "emptyDir": {}}]}}`,
			want:    `{"metadata": {}, "spec": {"volumes": [{"name": "credential-socket", "emptyDir": {}}]}}`,
			unknown: "spec.volumes[credential-socket]",
		},
		"the empty directory of the gateway template": {
			injected: `{"metadata": {"annotations": {"inject.istio.io/templates": "gateway", "sidecar.istio.io/status": "{\"containers\":[\"istio-proxy\"],\"volumes\":[\"credential-socket\"]}"}},
				"spec": {"volumes": [{"name": "credential-socket", "emptyDir": {}}]}}`,
			want:    `{"metadata": {"annotations": {"inject.istio.io/templates": "gateway"}}, "spec": {}}`,
			assumed: "metadata.annotations",
		},
		"defaults of the API server": {
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"containers\":[\"istio-proxy\"],\"volumes\":[\"workload-socket\",\"istiod-ca-cert\"]}"}},
				"spec": {"containers": [{"name": "istio-proxy", "args": ["proxy"], "terminationMessagePath": "/dev/termination-log"}],
				"volumes": [{"name": "workload-socket", "emptyDir": {}}, {"name": "istiod-ca-cert", "configMap": {"name": "istio-ca-root-cert", "defaultMode": 420}}]}}`,
			want: `{"metadata": {}, "spec": {}}`,
		},
		"a file mode of the pod's own": {
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"containers\":[\"istio-proxy\"],\"volumes\":[\"istio-token\",\"istiod-ca-cert\"]}"}},
				"spec": {"volumes": [{"name": "istio-token", "projected": {"sources": []}}, {"name": "istiod-ca-cert", "configMap": {"name": "istio-ca-root-cert", "defaultMode": 256}}]}}`,
			want:    `{"metadata": {}, "spec": {"volumes": [{"name": "istiod-ca-cert", "configMap": {"name": "istio-ca-root-cert", "defaultMode": 256}}]}}`,
			unknown: "spec.volumes[istiod-ca-cert]",
		},
	})
}
