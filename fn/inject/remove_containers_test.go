// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import "testing"

// TestRemoveContainers takes injected containers out, and puts the own ones back.
func TestRemoveContainers(t *testing.T) {
	testRemovals(t, map[string]removalCase{
		"containers and volumes": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"initContainers": [{"name": "istio-init"}], "containers": [{"name": "istio-proxy", "args": ["proxy"]}, {"name": "a"}],
				"volumes": [{"name": "istio-envoy", "emptyDir": {}}, {"name": "own"}]}}`,
			want: `{"metadata": {}, "spec": {"containers": [{"name": "a"}], "volumes": [{"name": "own"}]}}`,
		},
		"a status that lists containers which are not Istio's": {
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"initContainers\":[\"istio-init\",\"mine\",\"gone\"],\"containers\":[\"istio-proxy\",\"app\"]}"}},
				"spec": {"initContainers": [{"name": "mine"}, {"name": "istio-init"}], "containers": [{"name": "app"}, {"name": "b"}, {"name": "istio-proxy", "args": ["proxy"]}]}}`,
			want:    `{"metadata": {}, "spec": {"initContainers": [{"name": "mine"}], "containers": [{"name": "app"}, {"name": "b"}]}}`,
			unknown: "spec.containers[app] spec.initContainers[mine]",
		},
		"appended twice the same": {
			injected: `{"metadata": {"annotations": {` + statusOfAppend + `}}, "spec": {"containers": [{"name": "a", "volumeMounts": [{"name": "istio-envoy"}]}, {"name": "istio-proxy", "args": ["proxy"]}],
				"volumes": [{"name": "istio-envoy", "hostPath": {"path": "/own"}}, {"name": "istio-envoy", "emptyDir": {}}], "imagePullSecrets": [{"name": "registry"}, {"name": "registry"}]}}`,
			want: `{"metadata": {}, "spec": {"containers": [{"name": "a", "volumeMounts": [{"name": "istio-envoy"}]}],
				"volumes": [{"name": "istio-envoy", "hostPath": {"path": "/own"}}], "imagePullSecrets": [{"name": "registry"}]}}`,
			assumed: "spec.containers spec.initContainers",
		},
		"the user's own proxy": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `, "proxy.istio.io/overrides": "{\"containers\":[{\"name\":\"istio-proxy\",\"resources\":{},\"args\":[\"x\"]}]}"}},
				"spec": {"containers": [{"name": "a"}, {"name": "istio-proxy", "image": "proxy:1", "args": ["x"]}]}}`,
			want:    `{"metadata": {}, "spec": {"containers": [{"name": "a"}, {"name": "istio-proxy", "image": "auto", "args": ["x"]}]}}`,
			assumed: "spec.containers",
		},
		"an own istio-validation beside the one that was appended": {
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"version\":\"abc\",\"initContainers\":[\"istio-validation\"],\"containers\":[\"istio-proxy\"]}"}},
				"spec": {"initContainers": [{"name": "istio-validation", "image": "own:1"}, {"name": "istio-validation", "command": ["istio-iptables", "--run-validation"]}]}}`,
			want:    `{"metadata": {}, "spec": {"initContainers": [{"name": "istio-validation", "image": "own:1"}]}}`,
			assumed: "spec.containers spec.initContainers",
		},
		"an own istio-validation behind the one that was put first": {
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"version\":\"abc\",\"initContainers\":[\"istio-validation\"],\"containers\":[\"istio-proxy\"]}"}},
				"spec": {"initContainers": [{"name": "istio-validation", "args": ["istio-iptables", "--run-validation"]}, {"name": "istio-validation", "image": "own:1"}]}}`,
			want:    `{"metadata": {}, "spec": {"initContainers": [{"name": "istio-validation", "image": "own:1"}]}}`,
			assumed: "spec.containers spec.initContainers",
		},
	})
}
