// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
)

// sidecarConfig is an injector configuration with one template.
func sidecarConfig(template string) string {
	return "policy: enabled\ntemplates:\n  sidecar: |\n    " + strings.ReplaceAll(template, "\n", "\n    ") + "\n"
}

const smallTemplate = `spec:
  containers:
  - name: istio-proxy
    image: proxy
    resources:
      requests: {cpu: {{ annotation .ObjectMeta "sidecar.istio.io/proxyCPU" "100m" | quote }}}
      limits: {cpu: "500m"}
`

func smallInjector(t testing.TB, version, template string) *istio.Injector {
	t.Helper()
	in, err := istio.New(istio.Options{Version: version, Config: sidecarConfig(template), Values: "{}", Native: istio.NativeDisabled})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// injectorOf has the shape that configurations of the version have.
func injectorOf(t testing.TB, version string) *istio.Injector {
	t.Helper()
	v, _ := istio.ParseVersion(version)
	profile, _ := istio.ProfileOf(v)
	if profile.Generation() == istio.GenerationC {
		return smallInjector(t, version, smallTemplate)
	}
	in, err := istio.New(istio.Options{Version: version, Config: "policy: enabled\ntemplate: |\n  containers:\n  - {name: istio-proxy, image: proxy}\n", Values: "{}"})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func podOf(t testing.TB, text string) map[string]any {
	t.Helper()
	v, err := manifest.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := v.(map[string]any)
	return m
}

func TestAnnotationValidation(t *testing.T) {
	tests := []struct{ version, annotation, value, want string }{
		{"1.9", "sidecar.istio.io/interceptionMode", "MAGIC", "interceptionMode: want one of REDIRECT, TPROXY, NONE"},
		{"1.9", "sidecar.istio.io/interceptionMode", "TPROXY", ""},
		{"1.9", "status.sidecar.istio.io/port", "70000", `"70000" is not a port`},
		{"1.9", "readiness.status.sidecar.istio.io/periodSeconds", "-1", "want a whole number"},
		{"1.9", "readiness.status.sidecar.istio.io/failureThreshold", "many", "want a whole number"},
		{"1.9", "readiness.status.sidecar.istio.io/initialDelaySeconds", "3", ""},
		{"1.31", "traffic.sidecar.istio.io/includeOutboundIPRanges", "*", ""},
		{"1.31", "traffic.sidecar.istio.io/includeOutboundIPRanges", "10.0.0.0/8,nonsense", `includeIPRanges: "nonsense" is not a range of addresses`},
		{"1.31", "traffic.sidecar.istio.io/excludeOutboundIPRanges", "*", `excludeIPRanges: "*" is not a range of addresses`},
		{"1.31", "traffic.sidecar.istio.io/excludeOutboundIPRanges", "fd00::/8", ""},
		{"1.31", "traffic.sidecar.istio.io/includeInboundPorts", "*", ""},
		{"1.31", "traffic.sidecar.istio.io/includeInboundPorts", "80, 81", ""},
		{"1.31", "traffic.sidecar.istio.io/includeInboundPorts", "80,x", `includeInboundPorts: "x" is not a port`},
		{"1.31", "traffic.sidecar.istio.io/excludeInboundPorts", "*", `excludeInboundPorts: "*" is not a port`},
		{"1.31", "traffic.sidecar.istio.io/excludeOutboundPorts", "1,99999", `excludeOutboundPorts: "99999" is not a port`},
		{"1.31", "prometheus.istio.io/merge-metrics", "maybe", "want true or false"},
		{"1.31", "prometheus.istio.io/scrape-targets", "15020:/m", "port 15020 is the agent's own"},
		{"1.31", "prometheus.istio.io/scrape-targets", "15090", "port 15090 is Istio's (Envoy's metrics)"},
		{"1.31", "prometheus.istio.io/scrape-targets", "99999:/m", `"99999" is not a port`},
		{"1.31", "prometheus.istio.io/scrape-targets", ":/m", ""},
		{"1.31", "prometheus.istio.io/scrape-targets", " , ", ""},
		{"1.31", "prometheus.istio.io/scrape-targets", "", ""},
		{"1.31", "prometheus_istio_io_scrape_targets", "15090:/m", "port 15090 is Istio's"},
		{"1.31", "prometheus.io/port", "15090", "port 15090 is Istio's (Envoy's metrics)"},
		{"1.31", "prometheus.io/port", "015020", "port 15020 is the agent's own"},
		{"1.31", "prometheus.io/port", "15020", ""},
		{"1.31", "prometheus.io/port", "http", `"http" is not a port`},
		{"1.31", "prometheus.io/port", "0", `"0" is not a port`},
		{"1.31", "prometheus-io/port", "99999", `"99999" is not a port`},
		{"1.30", "prometheus.io/port", "15090", ""},
		{"1.30", "prometheus.istio.io/scrape-targets", "15020:/m", ""},
		{"1.31", "proxy.istio.io/config", "drainDuration: [", "proxy.istio.io/config"},
		{"1.31", "proxy.istio.io/config", "drainDuration: 45s", ""},
		{"1.31", "proxy.istio.io/config", "drainDuration: 90s", ""},
		{"1.31", "proxy.istio.io/config", "drainDuration: 1500ms", "drainDuration: 1.5s is not in whole seconds"},
		{"1.31", "proxy.istio.io/config", "drainDuration: 0s", "drainDuration: 0s is too short"},
		{"1.16", "proxy.istio.io/config", "drainDuration: 90s", "parentShutdownDuration: 1m0s is not longer than drainDuration, which is 1m30s"},
		{"1.16", "proxy.istio.io/config", "{drainDuration: 90s, parentShutdownDuration: 2m}", ""},
		{"1.10", "proxy.istio.io/config", "{drainDuration: 90s, parentShutdownDuration: 2h}", "is longer than 1h0m0s"},
		{"1.31", "proxy.istio.io/config", "discoveryAddress: istiod", `discoveryAddress: "istiod" is not HOST:PORT`},
		{"1.31", "proxy.istio.io/config", "discoveryAddress: istiod.istio-system.svc:0", `discoveryAddress: "0" is not a port`},
		{"1.31", "proxy.istio.io/config", "discoveryAddress: my_istiod:15012", `"my_istiod" is neither the name of a host nor an IP address`},
		{"1.31", "proxy.istio.io/config", "discoveryAddress: 10.0.0.300:15012", `"10.0.0.300" is neither the name of a host nor an IP address`},
		{"1.31", "proxy.istio.io/config", `discoveryAddress: "[fd00::1]:15012"`, ""},
		{"1.31", "proxy.istio.io/config", "discoveryAddress: ''", "discoveryAddress: "},
		{"1.31", "proxy.istio.io/config", "tracing: {zipkin: {address: zipkin}}", "tracing.zipkin.address: "},
		{"1.31", "proxy.istio.io/config", "tracing: {datadog: {address: $(HOST_IP):8126}}", ""},
		{"1.31", "proxy.istio.io/config", "envoyAccessLogService: {address: als}", "envoyAccessLogService.address: "},
		{"1.31", "proxy.istio.io/config", "statusPort: 70000", "statusPort: 70000 is not a port"},
		{"1.31", "proxy.istio.io/config", "proxyAdminPort: 0", "proxyAdminPort: 0 is not a port"},
		{"1.31", "proxy.istio.io/config", "binaryPath: ''", "binaryPath: it must not be empty"},
		{"1.26", "sidecar.istio.io/proxyMemory", "lots", ""},
		{"1.27", "sidecar.istio.io/proxyMemory", "lots", "want a quantity"},
		{"1.27", "sidecar.istio.io/proxyCPULimit", "1", ""},
		{"1.29.6", "traffic.sidecar.istio.io/excludeInterfaces", "eth0,a/b", ""},
		{"1.30", "traffic.sidecar.istio.io/excludeInterfaces", "eth0,a/b", `"a/b" is not the name of a network interface`},
		{"1.30", "traffic.sidecar.istio.io/excludeInterfaces", "eth0:1", `"eth0:1" is not the name of a network interface`},
		{"1.30", "traffic.sidecar.istio.io/kubevirtInterfaces", "1eth", `"1eth" is not the name of a network interface`},
		{"1.30", "traffic.sidecar.istio.io/kubevirtInterfaces", "a;b", `"a;b" is not the name of a network interface`},
		{"1.30", "istio.io/reroute-virtual-interfaces", "$(x)", `"$(x)" is not the name of a network interface`},
		{"1.30", "istio.io/reroute-virtual-interfaces", "..", `".." is not the name of a network interface`},
		{"1.30", "istio.io/reroute-virtual-interfaces", "net1, net2", ""},
		{"1.31", "proxy.istio.io/config", `{serviceCluster: ""}`, "serviceCluster: it must not be empty"},
		{"1.31", "proxy.istio.io/config", "{tracingServiceName: APP_LABEL_AND_NAMESPACE}", ""},
		{"1.31", "proxy.istio.io/config", `{tracing: {lightstep: {address: "a:1"}}}`, "tracing.lightstep.accessToken"},
		{"1.6", "proxy.istio.io/config", `{tracing: {lightstep: {address: "a:1"}}}`, "tracing.lightstep.accessToken"},
		{"1.31", "proxy.istio.io/config", `{tracing: {lightstep: {address: "$(HOST_IP):1", accessToken: x}}}`, "tracing.lightstep.address"},
		{"1.7", "proxy.istio.io/config", `{tracing: {zipkin: {address: "$(HOST_IP):1"}}}`, "tracing.zipkin.address"},
		{"1.8", "proxy.istio.io/config", `{tracing: {zipkin: {address: "$(HOST_IP):1"}}}`, ""},
		{"1.31", "proxy.istio.io/config", `{discoveryAddress: "$(HOST_IP):1"}`, "discoveryAddress"},
		{"1.31", "proxy.istio.io/config", "{tracing: {tlsSettings: {mode: MUTUAL}}}", "tracing.tlsSettings: mode MUTUAL needs"},
		{"1.31", "proxy.istio.io/config", "{tracing: {tlsSettings: {mode: MUTUAL, credentialName: a}}}", ""},
		{"1.31", "proxy.istio.io/config", "{tracing: {tlsSettings: {mode: SIMPLE, credentialName: a, caCrl: b}}}", "tracing.tlsSettings: credentialName"},
		{"1.21", "proxy.istio.io/config", "{tracing: {tlsSettings: {mode: SIMPLE, credentialName: a, caCertificates: b}}}", "tracing.tlsSettings: credentialName"},
		{"1.31", "proxy.istio.io/config", "{tracing: {tlsSettings: {mode: SIMPLE, insecureSkipVerify: true, caCertificates: a}}}", "insecureSkipVerify"},
		{"1.18", "proxy.istio.io/config", "{tracing: {tlsSettings: {mode: SIMPLE, insecureSkipVerify: true, caCertificates: a}}}", ""},
		{"1.31", "proxy.istio.io/config", "{tracing: {tlsSettings: {mode: SIMPLE, credentialName: 'configmap://a'}}}", "credentialName: a ConfigMap"},
		{"1.31", "proxy.istio.io/config", "{tracing: {customTags: {a: null}}}", ""},
		{"1.31", "proxy.istio.io/config", "{tracing: {zipkin: {address: 'a:1'}, datadog: {address: 'b:1'}}}", ""},
		{"1.31", "proxy.istio.io/config", "{privateKeyProvider: {cryptomb: {}}}", "privateKeyProvider: cryptomb.pollDelay"},
		{"1.31", "proxy.istio.io/config", "{privateKeyProvider: {qat: {pollDelay: 0s}}}", "privateKeyProvider: qat.pollDelay"},
		{"1.31", "proxy.istio.io/config", "{privateKeyProvider: {cryptomb: {pollDelay: 10ms}}}", ""},
		{"1.31", "proxy.istio.io/config", "{privateKeyProvider: {}}", "privateKeyProvider: it names no provider"},
		{"1.31", "proxy.istio.io/config", "{connectionSettings: {httpIdleTimeout: -1s}}", "connectionSettings: httpIdleTimeout"},
		{"1.31", "proxy.istio.io/config", "{connectionSettings: {httpMaxConcurrentStreams: 0}}", "connectionSettings: httpMaxConcurrentStreams: 0 is less than 1"},
		{"1.31", "proxy.istio.io/config", "{connectionSettings: {http2InitialStreamWindowSize: 65534}}", "connectionSettings: http2InitialStreamWindowSize"},
		{"1.31", "proxy.istio.io/config", "{connectionSettings: {listenerPerConnectionBufferLimitBytes: 0}}", ""},
		{"1.31", "proxy.istio.io/config", "{controlPlaneAuthPolicy: INHERIT}", "controlPlaneAuthPolicy: INHERIT is neither NONE nor MUTUAL_TLS"},
		{"1.8", "proxy.istio.io/config", "{statusPort: 0}", ""},
		{"1.10", "proxy.istio.io/config", "{statusPort: 0}", ""},
		{"1.11", "proxy.istio.io/config", "{statusPort: 0}", "statusPort: 0 is not a port"},
		{"1.6.0", "istio.io/proxyConfig", "drainDuration: [", "istio.io/proxyConfig"},
		{"1.6.0", "proxy.istio.io/config", "drainDuration: [", ""},
		{"1.6.1", "istio.io/proxyConfig", "drainDuration: [", ""},
		{"1.24.6", "sidecar.istio.io/enableCoreDump", "maybe", "want true or false"},
		{"1.4.10", "sidecar.istio.io/enableCoreDump", "maybe", ""},
		{"1.25", "sidecar.istio.io/enableCoreDump", "maybe", ""},
		{"1.4.10", "readiness.status.sidecar.istio.io/applicationPorts", "x", `readinessApplicationPorts: "x" is not a port`},
		{"1.4.10", "readiness.status.sidecar.istio.io/applicationPorts", "*", ""},
		{"1.0.2", "readiness.status.sidecar.istio.io/applicationPorts", "x", ""},
		{"1.5", "readiness.status.sidecar.istio.io/applicationPorts", "x", ""},
		{"1.1.17", "traffic.sidecar.istio.io/excludeOutboundPorts", "x", ""},
		{"1.2.0", "traffic.sidecar.istio.io/excludeOutboundPorts", "x", `excludeOutboundPorts: "x" is not a port`},
		{"1.15.7", "traffic.sidecar.istio.io/includeOutboundIPRanges", "10.0.0.0/08", ""},
		{"1.15.7", "traffic.sidecar.istio.io/includeOutboundIPRanges", "10.0.0.0/00", ""},
		{"1.16", "traffic.sidecar.istio.io/includeOutboundIPRanges", "10.0.0.0/08", "10.0.0.0/08"},
		{"1.27.5", "sidecar.istio.io/proxyMemory", "lots", ""},
		{"1.28.3", "sidecar.istio.io/proxyMemory", "lots", ""},
		{"1.28.4", "sidecar.istio.io/proxyMemory", "2e3m", "want a quantity"},
		{"1.29", "sidecar.istio.io/proxyCPU", "1\n", "control characters"},
	}
	for _, tt := range tests {
		t.Run(tt.version+" "+tt.annotation+"="+tt.value, func(t *testing.T) {
			pod := map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{tt.annotation: tt.value}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web"}}},
			}
			_, err := Istio(injectorOf(t, tt.version), Request{Pod: pod})
			if tt.want == "" {
				if err != nil {
					t.Errorf("got the error %v, want none", err)
				}
				return
			}
			var fe *podmap.FieldError
			if !errors.As(err, &fe) || fe.Field != "metadata.annotations["+tt.annotation+"]" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got the error %v, want one about the annotation that says %q", err, tt.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	tests := []struct{ name, template, pod, want string }{
		{"not YAML", "spec:\n  containers: [", "spec: {containers: []}", `rendering template "sidecar": what it prints is not YAML: `},
		{"a list", "- a\n- b", "spec: {containers: []}", `rendering template "sidecar": it has to print a map with metadata and spec, and prints a list`},
		{"wrong type", "spec:\n  containers:\n  - {name: istio-proxy, env: [{name: A, value: 15}]}", "spec: {containers: []}",
			`rendering template "sidecar": spec.containers[0].env[0].value: it has to be a string and is the number 15`},
		{"annotation that is a number", "metadata: {annotations: {a: 1}}", "spec: {containers: []}",
			`rendering template "sidecar": metadata.annotations[a]: it has to be a string and is the number 1`},
		{"element without its name", "spec:\n  containers:\n  - {image: x}", "spec: {containers: [{name: web}]}", `rendering template "sidecar": `},
		{"init container without its name", "spec: {initContainers: [{name: init, image: x}]}", "spec: {initContainers: [{name: a}, {image: b}], containers: [{name: web}]}",
			"spec.initContainers[1].name: is missing"},
		{"unknown template", smallTemplate, "metadata: {annotations: {inject.istio.io/templates: gateway}}\nspec: {containers: []}",
			`metadata.annotations[inject.istio.io/templates]: selecting templates: "gateway" is not among the templates of the injector's configuration, which are sidecar`},
		{"label that is a bool", smallTemplate, "metadata: {labels: {canary: true}}\nspec: {containers: []}",
			"metadata.labels[canary]: it has to be a string and is the bool true; put it in quotes"},
		{"containers that are a map", smallTemplate, "spec: {containers: {web: {}}}", "spec.containers: it has to be a list"},
		{"port that is text", smallTemplate, "spec: {containers: [{name: web, ports: [{containerPort: '80'}]}]}",
			`spec.containers[0].ports[0].containerPort: it has to be a number and is the string "80"`},
		{"no spec", smallTemplate, "metadata: {}", "spec: the pod has none"},
		{"overrides that are not JSON", smallTemplate, "metadata: {annotations: {proxy.istio.io/overrides: '{'}}\nspec: {containers: []}",
			"metadata.annotations[proxy.istio.io/overrides]: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Istio(smallInjector(t, "1.31", tt.template), Request{Pod: podOf(t, tt.pod)})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got the error %v, want one that says %q", err, tt.want)
			}
		})
	}
}

// TestUserRequestAboveLimit leaves the application's own mistakes to the cluster: they are not the injection's.
func TestUserRequestAboveLimit(t *testing.T) {
	pod := podOf(t, "spec: {containers: [{name: web, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]}")
	for _, template := range []string{smallTemplate, "spec:\n  containers:\n  - {name: web, env: [{name: GRPC_XDS_BOOTSTRAP, value: /b}]}"} {
		if _, err := Istio(smallInjector(t, "1.31", template), Request{Pod: pod}); err != nil {
			t.Error(err)
		}
	}
}
