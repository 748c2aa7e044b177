// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRemoveProbes puts probes back that the agent answers.
func TestRemoveProbes(t *testing.T) {
	testRemovals(t, map[string]removalCase{
		"probes of 1.1": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"containers": [
				{"name": "a", "ports": [{"name": "web", "containerPort": 80}], "livenessProbe": {"periodSeconds": 3, "httpGet": {"path": "/app-health/a/livez", "port": 15020}},
				 "readinessProbe": {"httpGet": {"path": "/app-health/a/readyz", "port": 15020, "scheme": "HTTP"}}},
				{"name": "istio-proxy", "args": ["proxy"], "env": [{"name": "ISTIO_KUBE_APP_PROBERS", "value": "{\"/app-health/a/livez\":{\"path\":\"/l\",\"port\":80},\"/app-health/a/readyz\":{\"port\":81,\"scheme\":\"HTTPS\"}}"}]}]}}`,
			want: `{"metadata": {}, "spec": {"containers": [{"name": "a", "ports": [{"name": "web", "containerPort": 80}],
				"livenessProbe": {"periodSeconds": 3, "httpGet": {"path": "/l", "port": "web"}}, "readinessProbe": {"httpGet": {"port": 81, "scheme": "HTTPS"}}}]}}`,
			assumed: "spec.containers[a].livenessProbe.httpGet.port",
		},
		"probes and handlers of 1.31, the proxy being native": {
			injected: `{"metadata": {"annotations": {` + strings.Replace(strings.Replace(statusOfMerge, `\"istio-init\"`, `\"istio-init\",\"istio-proxy\"`, 1), `\"containers\":[\"istio-proxy\"]`, `\"containers\":null`, 1) + `}},
				"spec": {"initContainers": [{"name": "istio-init"}, {"name": "istio-proxy", "args": ["proxy"], "env": [{"name": "ISTIO_KUBE_APP_PROBERS", "value":
				"{\"/app-health/a/livez\":{\"grpc\":{\"port\":5,\"service\":\"s\"}},\"/app-health/a/startupz\":{\"tcpSocket\":{\"port\":6}},\"/app-lifecycle/a/prestopz\":{\"httpGet\":{\"path\":\"/bye\",\"port\":7}},\"/app-health/i/readyz\":{\"httpGet\":{\"port\":8}}}"}]},
				{"name": "i", "readinessProbe": {"httpGet": {"path": "/app-health/i/readyz", "port": 15020}}}],
				"containers": [{"name": "a", "livenessProbe": {"httpGet": {"path": "/app-health/a/livez", "port": 15020}}, "startupProbe": {"httpGet": {"path": "/app-health/a/startupz", "port": 15020}},
				"lifecycle": {"preStop": {"httpGet": {"path": "/app-lifecycle/a/prestopz", "port": 15020}}}}]}}`,
			want: `{"metadata": {}, "spec": {"initContainers": [{"name": "i", "readinessProbe": {"httpGet": {"port": 8}}}],
				"containers": [{"name": "a", "livenessProbe": {"grpc": {"port": 5, "service": "s"}}, "startupProbe": {"tcpSocket": {"port": 6}}, "lifecycle": {"preStop": {"httpGet": {"path": "/bye", "port": 7}}}}]}}`,
		},
		"a probe that nothing is known of": {
			injected: `{"metadata": {"annotations": {` + statusOfMerge + `}}, "spec": {"containers": [{"name": "istio-proxy", "args": ["proxy"]}, {"name": "a", "livenessProbe": {"httpGet": {"path": "/app-health/a/livez", "port": 15020}}}]}}`,
			want:     `{"metadata": {}, "spec": {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"path": "/app-health/a/livez", "port": 15020}}}]}}`,
			unknown:  "spec.containers[a].livenessProbe.httpGet",
		},
	})
}

// TestRemoveUnreadable checks that what the proxy's variables no longer tell stays and is named. A pod may have such values
// of its own in its istio-proxy container, and the webhook leaves them there.
func TestRemoveUnreadable(t *testing.T) {
	const status = `"sidecar.istio.io/status": "{\"containers\":[\"istio-proxy\"]}"`
	const settings = `"prometheus.io/path": "/stats/prometheus", "prometheus.io/scrape": "true"`
	const probe = `"readinessProbe": {"httpGet": {"path": "/app-health/a/readyz", "port": 15020}}`
	proxy := func(name, value string) string {
		return `{"name": "istio-proxy", "args": ["proxy"], "env": [{"name": "` + name + `", "value": "` + value + `"}]}`
	}
	for name, test := range map[string]struct{ pod, want, unknown string }{
		"probers, and no probe that they tell of": {
			pod:  `{"metadata": {"annotations": {` + status + `}}, "spec": {"containers": [{"name": "a"}, ` + proxy("ISTIO_KUBE_APP_PROBERS", "no JSON") + `]}}`,
			want: `{"metadata": {}, "spec": {"containers": [{"name": "a"}]}}`,
		},
		"probers": {
			pod:     `{"metadata": {"annotations": {` + status + `}}, "spec": {"containers": [{"name": "a", ` + probe + `}, ` + proxy("ISTIO_KUBE_APP_PROBERS", "{") + `]}}`,
			want:    `{"metadata": {}, "spec": {"containers": [{"name": "a", ` + probe + `}]}}`,
			unknown: "spec.containers[a].readinessProbe.httpGet: ",
		},
		"one of the probers": {
			pod:     `{"metadata": {"annotations": {` + status + `}}, "spec": {"containers": [{"name": "a", ` + probe + `}, ` + proxy("ISTIO_KUBE_APP_PROBERS", `{\"a\":1}`) + `]}}`,
			want:    `{"metadata": {}, "spec": {"containers": [{"name": "a", ` + probe + `}]}}`,
			unknown: "spec.containers[a].readinessProbe.httpGet: ",
		},
		"settings of Prometheus": {
			pod:     `{"metadata": {"annotations": {` + status + `, ` + settings + `}}, "spec": {"containers": [{"name": "a"}, ` + proxy("ISTIO_PROMETHEUS_ANNOTATIONS", "{") + `]}}`,
			want:    `{"metadata": {"annotations": {` + settings + `}}, "spec": {"containers": [{"name": "a"}]}}`,
			unknown: "metadata.annotations[prometheus.io/*]: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Remove(RemoveRequest{Pod: decodeObject(t, []byte(test.pod))})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decodeObject(t, []byte(test.want)), got.Pod); diff != "" {
				t.Error(diff)
			}
			var unknown string
			for _, n := range got.Unknown {
				unknown += n.String() + "\n"
			}
			if !strings.HasPrefix(unknown, test.unknown) || test.unknown == "" && unknown != "" {
				t.Errorf("what cannot be known: %q, want %q", unknown, test.unknown)
			}
		})
	}
}

// TestRemoveProbeWithoutService checks that a gRPC probe without a service does not come back with one that is null, as
// Istio writes it down.
func TestRemoveProbeWithoutService(t *testing.T) {
	const pod = `{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"containers\":[\"istio-proxy\"]}"}}, "spec": {"containers": [
		{"name": "a", "readinessProbe": {"httpGet": {"path": "/app-health/a/readyz", "port": 15020}}},
		{"name": "istio-proxy", "args": ["proxy"], "env": [{"name": "ISTIO_KUBE_APP_PROBERS", "value": "{\"/app-health/a/readyz\":{\"grpc\":{\"port\":9000,\"service\":null}}}"}]}]}}`
	got, err := Remove(RemoveRequest{Pod: decodeObject(t, []byte(pod))})
	if err != nil {
		t.Fatal(err)
	}
	want := decodeObject(t, []byte(`{"metadata": {}, "spec": {"containers": [{"name": "a", "readinessProbe": {"grpc": {"port": 9000}}}]}}`))
	if diff := cmp.Diff(want, got.Pod); diff != "" {
		t.Error(diff)
	}
}
