// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/workload"
)

func notes(list []Note) string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = n.Field
	}
	return strings.Join(out, " ")
}

// TestRemove takes injections out that are written by hand, one kind of trace at a time.
func TestRemove(t *testing.T) {
	const status = `"sidecar.istio.io/status": "{\"initContainers\":[\"istio-init\"],\"containers\":[\"istio-proxy\"],\"volumes\":[\"istio-envoy\"],\"imagePullSecrets\":null,\"revision\":\"default\"}"`
	const oldStatus = `"sidecar.istio.io/status": "{\"version\":\"abc\",\"initContainers\":[\"istio-init\"],\"containers\":[\"istio-proxy\"],\"volumes\":[\"istio-envoy\"],\"imagePullSecrets\":[\"registry\"]}"`
	tests := map[string]struct {
		injected, want string
		unknown        string
		assumed        string
		listed         string
		// alone says that nothing was injected, so that the pod is left alone.
		alone bool
	}{
		"not injected": {
			alone:    true,
			injected: `{"metadata": {"labels": {"security.istio.io/tlsMode": "istio"}}, "spec": {"containers": [{"name": "a"}, {"name": "istio-proxy"}]}}`,
			want:     `{"metadata": {"labels": {"security.istio.io/tlsMode": "istio"}}, "spec": {"containers": [{"name": "a"}, {"name": "istio-proxy"}]}}`,
		},
		"containers and volumes": {
			injected: `{"metadata": {"annotations": {` + status + `}}, "spec": {"initContainers": [{"name": "istio-init"}], "containers": [{"name": "istio-proxy"}, {"name": "a"}],
				"volumes": [{"name": "istio-envoy", "emptyDir": {}}, {"name": "own"}]}}`,
			want: `{"metadata": {}, "spec": {"containers": [{"name": "a"}], "volumes": [{"name": "own"}]}}`,
		},
		"a volume that is still mounted": {
			injected: `{"metadata": {"annotations": {` + status + `}}, "spec": {"containers": [{"name": "istio-proxy"}, {"name": "a", "volumeMounts": [{"name": "istio-envoy"}]}],
				"volumes": [{"name": "istio-envoy"}]}}`,
			want:    `{"metadata": {}, "spec": {"containers": [{"name": "a", "volumeMounts": [{"name": "istio-envoy"}]}], "volumes": [{"name": "istio-envoy"}]}}`,
			unknown: "spec.volumes[istio-envoy]",
		},
		"a volume of the pod's own that Istio's was merged over": {
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"containers\":[\"istio-proxy\"],\"volumes\":[\"istio-data\",\"istio-envoy\",\"istio-token\"]}"}}, "spec": {"containers": [{"name": "istio-proxy"}, {"name": "a"}],
				"volumes": [{"name": "istio-data", "hostPath": {"path": "/own"}, "emptyDir": {}}, {"name": "istio-envoy", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}, {"name": "istio-token", "projected": {"sources": []}}]}}`,
			want:    `{"metadata": {}, "spec": {"containers": [{"name": "a"}], "volumes": [{"name": "istio-data", "hostPath": {"path": "/own"}}, {"name": "istio-envoy", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]}}`,
			unknown: "spec.volumes[istio-data] spec.volumes[istio-envoy]",
		},
		"a status that lists containers which are not Istio's": {
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"initContainers\":[\"istio-init\",\"mine\",\"gone\"],\"containers\":[\"istio-proxy\",\"app\"]}"}},
				"spec": {"initContainers": [{"name": "mine"}, {"name": "istio-init"}], "containers": [{"name": "app"}, {"name": "b"}, {"name": "istio-proxy"}]}}`,
			want:    `{"metadata": {}, "spec": {"initContainers": [{"name": "mine"}], "containers": [{"name": "app"}, {"name": "b"}]}}`,
			unknown: "spec.containers[app] spec.initContainers[mine]",
		},
		"appended twice the same": {
			injected: `{"metadata": {"annotations": {` + oldStatus + `}}, "spec": {"containers": [{"name": "a", "volumeMounts": [{"name": "istio-envoy"}]}, {"name": "istio-proxy"}],
				"volumes": [{"name": "istio-envoy", "hostPath": {"path": "/own"}}, {"name": "istio-envoy", "emptyDir": {}}], "imagePullSecrets": [{"name": "registry"}, {"name": "registry"}]}}`,
			want: `{"metadata": {}, "spec": {"containers": [{"name": "a", "volumeMounts": [{"name": "istio-envoy"}]}],
				"volumes": [{"name": "istio-envoy", "hostPath": {"path": "/own"}}], "imagePullSecrets": [{"name": "registry"}]}}`,
			assumed: "spec.containers spec.initContainers",
		},
		"a status of before lists": {
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "injected-version-root@abc"}}, "spec": {"initContainers": [{"name": "istio-init"}, {"name": "enable-core-dump"}],
				"containers": [{"name": "a"}, {"name": "istio-proxy", "args": ["proxy", "sidecar"]}], "volumes": [{"name": "istio-certs"}]}}`,
			want:    `{"metadata": {}, "spec": {"containers": [{"name": "a"}]}}`,
			assumed: "spec.containers spec.initContainers",
		},
		"probes of 1.1": {
			injected: `{"metadata": {"annotations": {` + status + `}}, "spec": {"containers": [
				{"name": "a", "ports": [{"name": "web", "containerPort": 80}], "livenessProbe": {"periodSeconds": 3, "httpGet": {"path": "/app-health/a/livez", "port": 15020}},
				 "readinessProbe": {"httpGet": {"path": "/app-health/a/readyz", "port": 15020, "scheme": "HTTP"}}},
				{"name": "istio-proxy", "env": [{"name": "ISTIO_KUBE_APP_PROBERS", "value": "{\"/app-health/a/livez\":{\"path\":\"/l\",\"port\":80},\"/app-health/a/readyz\":{\"port\":81,\"scheme\":\"HTTPS\"}}"}]}]}}`,
			want: `{"metadata": {}, "spec": {"containers": [{"name": "a", "ports": [{"name": "web", "containerPort": 80}],
				"livenessProbe": {"periodSeconds": 3, "httpGet": {"path": "/l", "port": "web"}}, "readinessProbe": {"httpGet": {"port": 81, "scheme": "HTTPS"}}}]}}`,
			assumed: "spec.containers[a].livenessProbe.httpGet.port",
		},
		"probes and handlers of 1.31, the proxy being native": {
			injected: `{"metadata": {"annotations": {` + strings.Replace(strings.Replace(status, `\"istio-init\"`, `\"istio-init\",\"istio-proxy\"`, 1), `\"containers\":[\"istio-proxy\"]`, `\"containers\":null`, 1) + `}},
				"spec": {"initContainers": [{"name": "istio-init"}, {"name": "istio-proxy", "env": [{"name": "ISTIO_KUBE_APP_PROBERS", "value":
				"{\"/app-health/a/livez\":{\"grpc\":{\"port\":5,\"service\":\"s\"}},\"/app-health/a/startupz\":{\"tcpSocket\":{\"port\":6}},\"/app-lifecycle/a/prestopz\":{\"httpGet\":{\"path\":\"/bye\",\"port\":7}},\"/app-health/i/readyz\":{\"httpGet\":{\"port\":8}}}"}]},
				{"name": "i", "readinessProbe": {"httpGet": {"path": "/app-health/i/readyz", "port": 15020}}}],
				"containers": [{"name": "a", "livenessProbe": {"httpGet": {"path": "/app-health/a/livez", "port": 15020}}, "startupProbe": {"httpGet": {"path": "/app-health/a/startupz", "port": 15020}},
				"lifecycle": {"preStop": {"httpGet": {"path": "/app-lifecycle/a/prestopz", "port": 15020}}}}]}}`,
			want: `{"metadata": {}, "spec": {"initContainers": [{"name": "i", "readinessProbe": {"httpGet": {"port": 8}}}],
				"containers": [{"name": "a", "livenessProbe": {"grpc": {"port": 5, "service": "s"}}, "startupProbe": {"tcpSocket": {"port": 6}}, "lifecycle": {"preStop": {"httpGet": {"path": "/bye", "port": 7}}}}]}}`,
		},
		"a probe that nothing is known of": {
			injected: `{"metadata": {"annotations": {` + status + `}}, "spec": {"containers": [{"name": "istio-proxy"}, {"name": "a", "livenessProbe": {"httpGet": {"path": "/app-health/a/livez", "port": 15020}}}]}}`,
			want:     `{"metadata": {}, "spec": {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"path": "/app-health/a/livez", "port": 15020}}}]}}`,
			unknown:  "spec.containers[a].livenessProbe.httpGet",
		},
		"Prometheus": {
			injected: `{"metadata": {"annotations": {` + status + `, "prometheus.io/scrape": "true", "prometheus.io/path": "/stats/prometheus", "prometheus.io/port": "15020"}},
				"spec": {"containers": [{"name": "istio-proxy", "env": [{"name": "ISTIO_PROMETHEUS_ANNOTATIONS", "value": "{\"scrape\":\"true\",\"path\":\"\",\"port\":\"80\"}"}]}]}}`,
			want:    `{"metadata": {"annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "80"}}, "spec": {}}`,
			assumed: "metadata.annotations[prometheus.io/*] metadata.annotations",
		},
		"Prometheus without settings": {
			injected: `{"metadata": {"annotations": {` + status + `, "prometheus.io/scrape": "true", "prometheus.io/path": "/stats/prometheus", "prometheus.io/port": "15020"}}, "spec": {"containers": [{"name": "istio-proxy"}]}}`,
			want:     `{"metadata": {}, "spec": {}}`,
			assumed:  "metadata.annotations[prometheus.io/path] metadata.annotations[prometheus.io/port] metadata.annotations[prometheus.io/scrape]",
		},
		"annotations that the proxy was told": {
			injected: `{"metadata": {"annotations": {` + status + `, "prometheus.io/scrape": "true", "prometheus.io/path": "/stats/prometheus", "prometheus.io/port": "15020", "own": "x", "later": "y"}},
				"spec": {"containers": [{"name": "istio-proxy", "env": [{"name": "ISTIO_METAJSON_ANNOTATIONS", "value": "{\"own\":\"x\",\"prometheus_io_port\":\"9\",\"prometheus.io/path\":\"/stats/prometheus\"}\n"}]}]}}`,
			want:    `{"metadata": {"annotations": {"own": "x", "later": "y", "prometheus.io/path": "/stats/prometheus", "prometheus_io_port": "9"}}, "spec": {}}`,
			unknown: "metadata.annotations[later]",
		},
		"the user's own proxy": {
			injected: `{"metadata": {"annotations": {` + status + `, "proxy.istio.io/overrides": "{\"containers\":[{\"name\":\"istio-proxy\",\"resources\":{},\"args\":[\"x\"]}]}"}},
				"spec": {"containers": [{"name": "a"}, {"name": "istio-proxy", "image": "proxy:1", "args": ["x"]}]}}`,
			want:    `{"metadata": {}, "spec": {"containers": [{"name": "a"}, {"name": "istio-proxy", "image": "auto", "args": ["x"]}]}}`,
			assumed: "spec.containers",
		},
		"labels": {
			injected: `{"metadata": {"annotations": {` + status + `, "istio.io/rev": "default"}, "labels": {"app": "web", "version": "v1", "security.istio.io/tlsMode": "istio", "service.istio.io/canonical-name": "web",
				"service.istio.io/canonical-revision": "v1", "istio.io/rev": "canary"}}, "spec": {"containers": [{"name": "istio-proxy"}]}}`,
			want:    `{"metadata": {"labels": {"app": "web", "version": "v1", "istio.io/rev": "canary"}}, "spec": {}}`,
			assumed: "metadata.labels[security.istio.io/tlsMode] metadata.labels[service.istio.io/canonical-revision] metadata.labels[service.istio.io/canonical-name]",
		},
		"labels of the user": {
			injected: `{"metadata": {"annotations": {` + status + `}, "labels": {"app": "web", "security.istio.io/tlsMode": "disabled", "service.istio.io/canonical-name": "shop", "service.istio.io/canonical-revision": "blue"}}, "spec": {}}`,
			want:     `{"metadata": {"labels": {"app": "web", "security.istio.io/tlsMode": "disabled", "service.istio.io/canonical-name": "shop", "service.istio.io/canonical-revision": "blue"}}, "spec": {}}`,
		},
		"the name of the workload": {
			injected: `{"metadata": {"annotations": {` + status + `}, "labels": {"service.istio.io/canonical-name": "web-deployment", "service.istio.io/canonical-revision": "latest"}}, "spec": {}}`,
			want:     `{"metadata": {}, "spec": {}}`,
			assumed:  "metadata.labels[service.istio.io/canonical-revision] metadata.labels[service.istio.io/canonical-name]",
		},
		"network and revision labels": {
			injected: `{"metadata": {"annotations": {` + oldStatus + `}, "labels": {"topology.istio.io/network": "n1", "istio.io/rev": "canary"}},
				"spec": {"containers": [{"name": "istio-proxy", "env": [{"name": "ISTIO_META_NETWORK", "value": "n1"}]}]}}`,
			want:    `{"metadata": {"labels": {"topology.istio.io/network": "n1"}}, "spec": {}}`,
			unknown: "metadata.labels[topology.istio.io/network] metadata.labels[istio.io/rev]",
			assumed: "spec.containers spec.initContainers",
		},
		"a revision label of 1.9": {
			injected: `{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"containers\":[\"istio-proxy\"]}"}, "labels": {"istio.io/rev": "canary"}}, "spec": {}}`,
			want:     `{"metadata": {"labels": {"istio.io/rev": "canary"}}, "spec": {}}`,
			unknown:  "metadata.labels[istio.io/rev]",
		},
		"fsGroup of a version that does not tell itself": {
			injected: `{"metadata": {"annotations": {` + status + `}}, "spec": {"securityContext": {"fsGroup": 1337}}}`,
			want:     `{"metadata": {}, "spec": {"securityContext": {"fsGroup": 1337}}}`, unknown: "spec.securityContext.fsGroup",
		},
		"fsGroup of a version that sets it": {
			injected: `{"metadata": {"annotations": {` + status + `}}, "spec": {"containers": [{"name": "istio-proxy", "image": "istio/proxyv2:1.12.9"}], "securityContext": {"fsGroup": 1337, "runAsUser": 5}}}`,
			want:     `{"metadata": {}, "spec": {"securityContext": {"runAsUser": 5}}}`, unknown: "spec.securityContext.fsGroup",
		},
		"fsGroup of a version that never sets it": {
			injected: `{"metadata": {"annotations": {` + status + `}}, "spec": {"containers": [{"name": "istio-proxy", "image": "istio/proxyv2:1.31.1"}], "securityContext": {"fsGroup": 1337}}}`,
			want:     `{"metadata": {}, "spec": {"securityContext": {"fsGroup": 1337}}}`,
		},
		"an empty security context": {
			injected: `{"metadata": {"annotations": {` + status + `}}, "spec": {"securityContext": {}}}`,
			want:     `{"metadata": {}, "spec": {"securityContext": {}}}`,
		},
		"the sysctl for low ports beside the sidecar template": {
			injected: `{"metadata": {"annotations": {` + status + `}}, "spec": {"securityContext": {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]}}}`,
			want:     `{"metadata": {}, "spec": {"securityContext": {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]}}}`,
		},
		"the sysctl for low ports of the gateway template": {
			injected: `{"metadata": {"annotations": {` + status + `, "inject.istio.io/templates": "gateway"}}, "spec": {"securityContext": {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]}}}`,
			want:     `{"metadata": {"annotations": {"inject.istio.io/templates": "gateway"}}, "spec": {}}`, assumed: "spec.securityContext.sysctls metadata.annotations",
		},
		"search domains beside a version that sets none": {
			injected: `{"metadata": {"annotations": {` + status + `}}, "spec": {"dnsConfig": {"searches": ["global", "corp.global"]}}}`,
			want:     `{"metadata": {}, "spec": {"dnsConfig": {"searches": ["global", "corp.global"]}}}`,
		},
		"search domains of Istio's": {
			injected: `{"metadata": {"annotations": {` + oldStatus + `}}, "spec": {"dnsConfig": {"searches": ["global", "shop.global"]}}}`,
			want:     `{"metadata": {}, "spec": {}}`, assumed: "spec.containers spec.initContainers", unknown: "spec.dnsConfig",
		},
		"search domains of others": {
			injected: `{"metadata": {"annotations": {` + oldStatus + `}}, "spec": {"dnsConfig": {"searches": ["corp"]}}}`,
			want:     `{"metadata": {}, "spec": {"dnsConfig": {"searches": ["corp"]}}}`, assumed: "spec.containers spec.initContainers", unknown: "spec.dnsConfig",
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
			injected: `{"metadata": {"annotations": {` + status + `}}, "spec": {"containers": [{"name": "a"}]}}`,
			want:     `{"metadata": {"annotations": {` + status + `}}, "spec": {"containers": [{"name": "a"}]}}`,
		},
		"CNI": {
			injected: `{"metadata": {"annotations": {` + strings.Replace(status, "istio-init", "istio-validation", 1) + `, "sidecar.istio.io/interceptionMode": "REDIRECT", "traffic.sidecar.istio.io/includeInboundPorts": "80,81",
				"traffic.sidecar.istio.io/excludeInboundPorts": "7,15020", "traffic.sidecar.istio.io/includeOutboundIPRanges": "10.0.0.0/8", "k8s.v1.cni.cncf.io/networks": "own, istio-cni"}},
				"spec": {"initContainers": [{"name": "istio-validation"}], "containers": [{"name": "istio-proxy"}, {"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 81}, {"containerPort": 82, "protocol": "UDP"}]}]}}`,
			want: `{"metadata": {"annotations": {"traffic.sidecar.istio.io/excludeInboundPorts": "7", "traffic.sidecar.istio.io/includeOutboundIPRanges": "10.0.0.0/8", "k8s.v1.cni.cncf.io/networks": "own"}},
				"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 81}, {"containerPort": 82, "protocol": "UDP"}]}]}}`,
			assumed: "metadata.annotations[sidecar.istio.io/interceptionMode] metadata.annotations[traffic.sidecar.istio.io/excludeInboundPorts] metadata.annotations[traffic.sidecar.istio.io/includeInboundPorts] metadata.annotations",
		},
		"a template of the user's own": {
			injected: `{"metadata": {"annotations": {` + status + `, "inject.istio.io/templates": "sidecar, mine"}}, "spec": {}}`,
			want:     `{"metadata": {"annotations": {"inject.istio.io/templates": "sidecar, mine"}}, "spec": {}}`,
			unknown:  "metadata", assumed: "metadata.annotations",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := decodeObject(t, []byte(test.injected))
			if spec := mapAt(pod, "spec"); spec["containers"] == nil {
				spec["containers"] = []any{map[string]any{"name": proxyContainer}} // what the status lists is there
			}
			before := copyMap(pod)
			out, err := Remove(RemoveRequest{Pod: pod, Owner: workload.Owner{Name: "web-deployment"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decodeObject(t, []byte(test.want)), out.Pod); diff != "" {
				t.Error(diff)
			}
			if got := notes(out.Unknown); got != test.unknown {
				t.Errorf("unknown %q, want %q", got, test.unknown)
			}
			if got := strings.Join(out.Listed, " "); got != test.listed {
				t.Errorf("listed %q, want %q", got, test.listed)
			}
			if got := notes(out.Assumed); got != test.assumed {
				t.Errorf("assumed %q, want %q", got, test.assumed)
			}
			if out.Injected == test.alone || out.Exact {
				t.Errorf("injected %t, exact %t", out.Injected, out.Exact)
			}
			if !reflect.DeepEqual(before, pod) {
				t.Error("the argument changed")
			}
		})
	}
}

func TestRemoveErrors(t *testing.T) {
	const status = `"sidecar.istio.io/status": "{\"containers\":[\"istio-proxy\"]}"`
	tests := map[string]struct{ pod, want string }{
		"no spec":         {`{"metadata": {}}`, "spec: "},
		"broken override": {`{"metadata": {"annotations": {` + status + `, "proxy.istio.io/overrides": "["}}, "spec": {"containers": [{"name": "istio-proxy"}]}}`, "proxy.istio.io/overrides"},
		"broken record":   {`{"metadata": {"annotations": {"prerig.dev/original": "{}"}}, "spec": {}}`, "prerig.dev/original"},
		"record no JSON":  {`{"metadata": {"annotations": {"prerig.dev/original": "["}}, "spec": {}}`, "prerig.dev/original"},
	}
	for name, test := range tests {
		_, err := Remove(RemoveRequest{Pod: decodeObject(t, []byte(test.pod))})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: have %v", name, err)
		}
	}
}

// TestRemoveUnreadable checks that what the proxy's variables no longer tell stays and is named. A pod may have such values
// of its own in its istio-proxy container, and the webhook leaves them there.
func TestRemoveUnreadable(t *testing.T) {
	const status = `"sidecar.istio.io/status": "{\"containers\":[\"istio-proxy\"]}"`
	const settings = `"prometheus.io/path": "/stats/prometheus", "prometheus.io/scrape": "true"`
	const probe = `"readinessProbe": {"httpGet": {"path": "/app-health/a/readyz", "port": 15020}}`
	proxy := func(name, value string) string {
		return `{"name": "istio-proxy", "env": [{"name": "` + name + `", "value": "` + value + `"}]}`
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
		{"name": "istio-proxy", "env": [{"name": "ISTIO_KUBE_APP_PROBERS", "value": "{\"/app-health/a/readyz\":{\"grpc\":{\"port\":9000,\"service\":null}}}"}]}]}}`
	got, err := Remove(RemoveRequest{Pod: decodeObject(t, []byte(pod))})
	if err != nil {
		t.Fatal(err)
	}
	want := decodeObject(t, []byte(`{"metadata": {}, "spec": {"containers": [{"name": "a", "readinessProbe": {"grpc": {"port": 9000}}}]}}`))
	if diff := cmp.Diff(want, got.Pod); diff != "" {
		t.Error(diff)
	}
}

// TestRecord checks that a pod comes back from its record to the last field, and that later edits of the injected pod stay.
func TestRecord(t *testing.T) {
	in := appendInjector(t, 8, "", "", "", nil)
	original := decodeObject(t, []byte(strings.Replace(appendPod, `"spec": {`, `"spec": {"unknownField": {"a": [1, {"b": null}]},`, 1)))
	res, err := Istio(in, Request{Pod: original})
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := RecordOriginal(original, res.Pod)
	if err != nil {
		t.Fatal(err)
	}
	again, err := RecordOriginal(original, res.Pod)
	if err != nil || !reflect.DeepEqual(recorded, again) {
		t.Errorf("two records differ: %v", err)
	}
	out, err := Remove(RemoveRequest{Pod: recorded})
	if err != nil || !out.Exact || len(out.Unknown) > 0 {
		t.Fatal(err, out.Exact, out.Unknown)
	}
	if diff := cmp.Diff(original, out.Pod); diff != "" {
		t.Error(diff)
	}
	p, _ := newPod(recorded)
	find(p.list(containersKey), "web")["image"] = "web:2"
	p.set("labels", "team", "shop")
	out, err = Remove(RemoveRequest{Pod: p.object()})
	if err != nil {
		t.Fatal(err)
	}
	want := copyMap(original)
	find(mapAt(want, "spec")["containers"].([]any), "web")["image"] = "web:2"
	mapAt(mapAt(want, "metadata"), "labels")["team"] = "shop"
	if diff := cmp.Diff(want, out.Pod); diff != "" {
		t.Errorf("edits after the injection: %s", diff)
	}
	res, err = Istio(in, Request{Pod: recorded, FromOriginal: true})
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := newPod(res.Pod); p.annotations()[RecordAnnotation] != "" {
		t.Error("injecting again keeps an old record")
	}
}

// TestRecordOfWhatAPatchCannotSay falls back to the whole original.
func TestRecordOfWhatAPatchCannotSay(t *testing.T) {
	original := decodeObject(t, []byte(`{"metadata": {"labels": null}, "spec": {"containers": [{"name": "a"}, {"name": "a", "image": "twice"}], "volumes": []}}`))
	injected := decodeObject(t, []byte(`{"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "a"}, {"name": "istio-proxy"}]}}`))
	recorded, err := RecordOriginal(original, injected)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Remove(RemoveRequest{Pod: recorded})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(original, out.Pod); diff != "" {
		t.Error(diff)
	}
}

// TestUpgrade injects with an old version and then with another one.
func TestUpgrade(t *testing.T) {
	var pods [9]map[string]any
	var injectors [9]*istio.Injector
	for minor := range pods {
		injectors[minor] = appendInjector(t, minor, "", "", "", nil)
		pods[minor] = appendTo(t, injectors[minor], appendPod)
	}
	for from := range pods {
		for to := range pods {
			got := appendTo(t, injectors[to], marshal(t, pods[from]))
			// The application's startup probe has a port name that it does not have: from 1.7 its path is lost (and named).
			want := decodeObject(t, []byte(marshal(t, pods[to])))
			if from >= 7 {
				for _, pod := range []map[string]any{got, want} {
					web := find(mapAt(pod, "spec")["containers"].([]any), "web")
					delete(web, "startupProbe")
					env, _ := find(mapAt(pod, "spec")["containers"].([]any), proxyContainer)["env"].([]any)
					if e := find(env, probersEnv); e != nil {
						e["value"] = strings.Replace(e["value"].(string), `,"/app-health/web/startupz":{"httpGet":{"path":"/app-health/web/startupz","port":15020,"scheme":"HTTP"},"timeoutSeconds":1}`, "", 1)
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("1.%d to 1.%d: %s", from, to, diff)
			}
		}
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// FuzzRemove looks for pods on which removal panics, changes its argument, or does not come to rest.
func FuzzRemove(f *testing.F) {
	f.Add(appendPod)
	f.Add(`{"metadata": {"annotations": {"sidecar.istio.io/status": "{}", "prerig.dev/original": "{\"patch\":{\"spec\":{\"containers\":[{\"$patch\":\"delete\",\"name\":\"a\"}]}}}"}}, "spec": {"containers": [{"name": "a"}]}}`)
	f.Add(`{"metadata": {"annotations": {"sidecar.istio.io/status": "{\"containers\":[\"a\"],\"volumes\":[\"v\"]}", "proxy.istio.io/overrides": "{\"containers\":[{\"name\":\"a\"}]}"}}, "spec": {"containers": [{"name": "a", "volumeMounts": [1, null]}], "volumes": [{"name": "v"}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var pod map[string]any
		if json.Unmarshal([]byte(text), &pod) != nil || pod == nil {
			return
		}
		before := fmt.Sprint(pod)
		out, err := Remove(RemoveRequest{Pod: pod})
		if fmt.Sprint(pod) != before {
			t.Fatal("the argument changed")
		}
		if err != nil || out.Exact {
			return
		}
		again, err := Remove(RemoveRequest{Pod: out.Pod})
		if err != nil || again.Injected || !reflect.DeepEqual(out.Pod, again.Pod) {
			t.Errorf("removing twice: %v, injected %t", err, again.Injected)
		}
	})
}
