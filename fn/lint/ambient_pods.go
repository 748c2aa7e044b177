// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// mayBeAmbient reports cheaply whether a pod may be in ambient mode.
func mayBeAmbient(in *Input) bool {
	if in.NamespaceLabels[ambient.DataplaneMode] == ambient.Ambient {
		return true
	}
	meta, _ := in.After["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	return labels[ambient.DataplaneMode] == ambient.Ambient
}

// labelledAmbient reports whether labels put the pod into ambient mode, whatever else keeps it out.
func (p *pod) labelledAmbient() bool { return ambient.Enrolled(p.in.NamespaceLabels, p.labels) }

// isAmbient reports whether ztunnel is going to handle the traffic of the pod. Source: Matches in cni/pkg/util/enablement_selector.go.
func (p *pod) isAmbient() bool {
	hostNetwork, _ := p.spec["hostNetwork"].(bool)
	return p.labelledAmbient() && p.proxy == nil && p.annotations[statusAnnotation] == "" && !hostNetwork && !p.isInjectedGateway()
}

// isInjectedGateway reports whether the injector makes the pod a gateway.
func (p *pod) isInjectedGateway() bool {
	return slices.Contains(strings.Split(p.annotations["inject.istio.io/templates"], ","), "gateway")
}

// isProbed reports whether the kubelet probes a container over the network.
func (p *pod) isProbed() bool {
	return slices.ContainsFunc(p.allContainers(), func(c container) bool {
		for _, key := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
			for _, action := range []string{"httpGet", "tcpSocket", "grpc"} {
				if c.nestedField(key, action) != nil {
					return true
				}
			}
		}
		return false
	})
}

func checkKeepsSidecar(p *pod) []finding {
	if !p.labelledAmbient() || p.in.NamespaceLabels["istio-injection"] == "enabled" {
		return nil
	}
	if p.proxy == nil && p.annotations[statusAnnotation] != "" {
		return []finding{{path: annotationPath(statusAnnotation), message: "by this annotation ambient mode takes the pod for one with a sidecar, and leaves it alone"}}
	}
	if !p.servesLocalApplication() {
		return nil
	}
	path := p.proxy.path
	for _, key := range []string{"sidecar.istio.io/inject", "istio.io/rev"} {
		if _, ok := p.labels[key]; ok {
			path = labelPath(key)
			break
		}
	}
	return []finding{{path: path, message: "the pod has a sidecar, and ambient mode leaves it alone: it calls others without their waypoints"}}
}

func checkOptOut(p *pod) []finding {
	const key = "sidecar.istio.io/inject"
	if !p.isAmbient() {
		return nil
	}
	for _, at := range []struct{ value, path string }{{p.labels[key], labelPath(key)}, {p.annotations[key], annotationPath(key)}} {
		if at.value == "false" {
			return []finding{{path: at.path, current: "false", message: "the pod has no sidecar by its own wish, and ambient mode redirects its traffic all the same"}}
		}
	}
	return nil
}

func checkHostNetworkInAmbient(p *pod) []finding {
	if on, _ := p.spec["hostNetwork"].(bool); !on || !p.labelledAmbient() {
		return nil
	}
	return []finding{{path: "spec.hostNetwork", current: true, message: "ambient mode leaves pods with the network of the node alone: the pod is outside of the mesh"}}
}

func checkSPIRE(p *pod) (out []finding) {
	if !p.labelledAmbient() {
		return nil
	}
	volumes, _ := p.spec["volumes"].([]any)
	for i, v := range podmap.Maps(volumes) {
		path := textOf(podmap.MapAt(v, "hostPath")["path"])
		if textOf(podmap.MapAt(v, "csi")["driver"]) == "csi.spiffe.io" || strings.HasPrefix(path, "/run/spire") {
			return []finding{{path: fmt.Sprintf("spec.volumes[%d]", i), message: "the proxy has its identity from SPIRE by this volume, and ztunnel has that of istiod"}}
		}
	}
	if slices.Contains(strings.Split(p.annotations["inject.istio.io/templates"], ","), "spire") {
		return []finding{{path: annotationPath("inject.istio.io/templates"), message: "the proxy has its identity from SPIRE, and ztunnel has that of istiod"}}
	}
	return nil
}

// captureExceptions are annotations by which traffic passes the proxy by, or is captured otherwise.
var captureExceptions = []string{"sidecar.istio.io/interceptionMode", "istio.io/reroute-virtual-interfaces"}

func isCaptureException(key string) bool {
	return strings.HasPrefix(key, "traffic.sidecar.istio.io/") || slices.Contains(captureExceptions, key)
}

func checkCaptureExceptions(p *pod) (out []finding) {
	if !p.isAmbient() {
		return nil
	}
	for _, key := range sortedKeys(p.annotations) {
		if isCaptureException(key) {
			out = append(out, finding{path: annotationPath(key), current: p.annotations[key],
				message: fmt.Sprintf("ambient mode does not read %s: it redirects all TCP traffic of the pod, and keeps the address of clients", key)})
		}
	}
	return out
}

// sidecarPrefixes are the beginnings of annotations that only the injector and a sidecar read.
var sidecarPrefixes = []string{
	"sidecar.istio.io/", "proxy.istio.io/", "inject.istio.io/", "readiness.status.sidecar.istio.io/", "status.sidecar.istio.io/",
	"prometheus.istio.io/", "policy.istio.io/",
}

// checkSidecarSettings leaves out pods that cannot move because of SPIRE, which keep their sidecars with all settings.
func checkSidecarSettings(p *pod) (out []finding) {
	if !p.isAmbient() || len(checkSPIRE(p)) > 0 {
		return nil
	}
	for _, key := range sortedKeys(p.annotations) {
		ours := slices.ContainsFunc(sidecarPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
		if ours && !isCaptureException(key) && key != "sidecar.istio.io/inject" && !configuresTraces(p, key) {
			out = append(out, finding{path: annotationPath(key), current: p.annotations[key], message: fmt.Sprintf("annotation %s has no effect: the pod has no sidecar", key)})
		}
	}
	return out
}

// configuresTraces reports whether an annotation has settings of traces.
func configuresTraces(p *pod, key string) bool {
	return key == "proxy.istio.io/config" && tracingSettings.MatchString(p.annotations[key])
}

var tracingSettings = lazyregexp.New(`(?m)^\s*"?tracing"?\s*:|[{,]\s*"?tracing"?\s*:`)

// checkTracing is about sampling and tags of traces. Source: istio.io/docs/ambient/usage/l7-features: a waypoint follows Telemetries.
func checkTracing(p *pod) []finding {
	const key = "proxy.istio.io/config"
	if !p.isAmbient() || !configuresTraces(p, key) {
		return nil
	}
	return []finding{{path: annotationPath(key), message: "its sampling and tags of traces end: the pod has no proxy that reports spans"}}
}

// checkMergedMetrics is about a scrape of the sidecar that the manifest asks for: the agent answered with the metrics of the application too.
func checkMergedMetrics(p *pod) []finding {
	if !p.isAmbient() {
		return nil
	}
	port, at := p.annotations["prometheus.io/port"], p.annotations["prometheus.io/path"]
	switch {
	case port == "15020" || port == "15090":
		return []finding{{path: annotationPath("prometheus.io/port"), current: port,
			message: "the scrape asks the sidecar, which the pod does not have: the metrics of the application are lost too"}}
	case at == "/stats/prometheus":
		return []finding{{path: annotationPath("prometheus.io/path"), current: at,
			message: "the scrape asks for the path of the sidecar, which the pod does not have"}}
	}
	return nil
}

// proxyEndpoint is an address of a sidecar in its own pod: Envoy's administration, the agent's status, metrics and health.
var proxyEndpoint = lazyregexp.New(`(localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0|\$\{?POD_IP\}?):150(00|04|20|21|90)\b|pilot-agent\s+(wait|request)`)

// proxyText is one text of a container that names a sidecar, with its field.
type proxyText struct{ container, path, text string }

// proxyTexts returns the commands, hooks and variables of the pod's own containers that call the sidecar.
func proxyTexts(p *pod) (out []proxyText) {
	for _, c := range p.allContainers() {
		if c.name == proxyName || p.injected[c.name] {
			continue
		}
		for _, key := range []string{"command", "args", "lifecycle", "env"} {
			forEachString(c.fields[key], c.path+"."+key, func(at, text string) bool {
				if proxyEndpoint.MatchString(text) || strings.Contains(text, quitCall) {
					out = append(out, proxyText{c.name, at, text})
				}
				return false
			})
		}
	}
	return out
}

// quits reports whether a text ends the sidecar: the agent's endpoint, or the setting of scuttle for it.
func (t proxyText) quits() bool { return strings.Contains(t.text, quitCall) }

func checkWaitsForProxy(p *pod) (out []finding) {
	if !p.isAmbient() {
		return nil
	}
	for _, t := range proxyTexts(p) {
		if !t.quits() && !strings.HasSuffix(strings.TrimSuffix(t.text, "/"), ":15020") {
			out = append(out, finding{path: t.path, container: t.container, message: fmt.Sprintf("container %s calls the sidecar, which the pod does not have: what waits for an answer waits without end", t.container)})
		}
	}
	return out
}

func checkQuitsProxy(p *pod) (out []finding) {
	if !p.isAmbient() {
		return nil
	}
	for _, t := range proxyTexts(p) {
		if t.quits() || strings.HasSuffix(strings.TrimSuffix(t.text, "/"), ":15020") {
			out = append(out, finding{path: t.path, container: t.container, message: fmt.Sprintf("container %s ends the sidecar, which the pod does not have: the call fails", t.container)})
		}
	}
	return out
}
