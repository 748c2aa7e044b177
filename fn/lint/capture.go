// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/result"
)

var captureRules = []Rule{
	{
		Code: "PR614", Title: "Application's port is left out of the capture", Severity: result.Warning, Audience: Applications,
		Why: "What arrives at the port goes past the proxy: without mutual TLS, authorization policy or telemetry. Ports of metrics and health checks are " +
			"left out on purpose, and are not reported where their name says so.",
		Change: "Remove the port from traffic.sidecar.istio.io/excludeInboundPorts, or set includeInboundPorts to \"*\". If it is meant, ignore this.",
		Issues: []string{"istio.io/docs/reference/config/annotations"},
		check:  checkUncapturedPorts,
	},
	{
		Code: "PR615", Title: "Proxy in a pod for Windows nodes", Severity: result.Error,
		Why:    "Istio's proxy and its init container are Linux images. On a Windows node they do not start, and neither does the pod.",
		Change: "Exclude the pod with the label sidecar.istio.io/inject: \"false\".",
		Issues: []string{"istio.io/docs/ops/deployment/application-requirements"},
		check:  checkWindows,
	},
	{
		Code: "PR616", Title: "Pod on the node's network stays without a proxy", Severity: result.Info, Audience: Applications,
		Why: "A pod with hostNetwork is never injected, as the capture would change the traffic of the node. Here its namespace or its own label asks for a proxy: " +
			"what it sends has no mutual TLS, and where others require it, it is refused.",
		Change: "Remove hostNetwork if the pod can do without; else say that it is meant with the label sidecar.istio.io/inject: \"false\".",
		Issues: []string{"istio.io/docs/ops/common-problems/injection"},
		check:  checkHostNetwork,
	},
	{
		Code: "PR617", Title: "Pod without the labels app and version", Audience: Applications,
		Why:    "Telemetry names workloads by these labels. Without them it takes the name of the workload, and \"latest\" for the version.",
		Change: "Add app.kubernetes.io/name and app.kubernetes.io/version, or app and version, to the labels of the pod template.",
		Issues: []string{"istio.io/docs/ops/deployment/application-requirements"},
		check:  checkTelemetryLabels,
	},
}

// observedPorts are words in the names of ports that are left out of the capture on purpose.
var observedPorts = []string{"metric", "prom", "health", "probe", "live", "ready", "status", "monitor"}

func checkUncapturedPorts(p *pod) []finding {
	if !p.sidecar() || p.interceptionMode() == "NONE" {
		return nil
	}
	const include, exclude = "traffic.sidecar.istio.io/includeInboundPorts", "traffic.sidecar.istio.io/excludeInboundPorts"
	if value, ok := p.annotations[include]; ok && strings.TrimSpace(value) == "" {
		return []finding{{
			path: annotationPath(include), current: value,
			message: "annotation " + include + " is empty: nothing that arrives at the pod goes through the proxy",
		}}
	}
	excluded := fieldsOf(p.annotations[exclude])
	var ports []string
	for _, c := range p.apps() {
		list, _ := c.fields["ports"].([]any)
		for _, item := range list {
			m, _ := item.(map[string]any)
			n, ok := integerOf(m["containerPort"])
			observed := isObserved(textOf(m["name"]))
			if text := strconv.FormatInt(n, 10); ok && !p.injected[c.name] && !observed && slices.Contains(excluded, text) && textOf(m["protocol"]) != "UDP" {
				ports = append(ports, fmt.Sprintf("%s of container %s", text, c.name))
			}
		}
	}
	if len(ports) == 0 {
		return nil
	}
	return []finding{{
		path: annotationPath(exclude), current: p.annotations[exclude],
		message: fmt.Sprintf("annotation %s leaves out port %s: what arrives there has no mutual TLS and no policy", exclude, strings.Join(ports, " and ")),
	}}
}

func checkWindows(p *pod) []finding {
	if p.proxy == nil {
		return nil
	}
	system, _ := p.spec["os"].(map[string]any)
	if textOf(system["name"]) == "windows" {
		return []finding{{path: "spec.os.name", current: "windows", message: "the pod is for Windows, where Istio's proxy does not run"}}
	}
	nodes := stringMap(p.spec["nodeSelector"])
	for _, key := range []string{"kubernetes.io/os", "beta.kubernetes.io/os"} {
		if nodes[key] == "windows" {
			return []finding{{
				path: fmt.Sprintf("spec.nodeSelector[%q]", key), current: "windows",
				message: "the pod is for Windows nodes, where Istio's proxy does not run",
			}}
		}
	}
	return nil
}

func checkHostNetwork(p *pod) []finding {
	const inject = "sidecar.istio.io/inject"
	if p.spec["hostNetwork"] != true || p.proxy != nil || p.labels[inject] == "false" || p.annotations[inject] == "false" {
		return nil
	}
	_, revision := p.in.NamespaceLabels["istio.io/rev"]
	byNamespace := p.in.NamespaceKnown && (p.in.NamespaceLabels["istio-injection"] == "enabled" || revision && p.in.NamespaceLabels["istio-injection"] == "")
	who := "namespace " + p.in.Namespace
	switch {
	case p.labels[inject] == "true":
		who = "its label " + inject
	case !byNamespace:
		return nil
	}
	return []finding{{
		path: "spec.hostNetwork", current: true, message: "the pod is on the network of its node and is never injected, though " + who + " asks for a proxy",
	}}
}

// checkTelemetryLabels reads the labels in which Istio looks for the names. Source: CanonicalServiceLabels in pkg/config/labels.
func checkTelemetryLabels(p *pod) []finding {
	if !p.sidecar() {
		return nil
	}
	var missing []string
	for _, one := range [][]string{{"app", "app.kubernetes.io/name", "service.istio.io/canonical-name"}, {"version", "app.kubernetes.io/version", "service.istio.io/canonical-revision"}} {
		if !slices.ContainsFunc(one, func(key string) bool { return p.labels[key] != "" }) {
			missing = append(missing, one[0])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []finding{{path: "metadata.labels", message: "the pod has no label " + strings.Join(missing, " and no label ") + " that telemetry could use"}}
}
