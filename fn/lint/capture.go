// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// observedPorts are words in the names of ports that are left out of the capture on purpose.
var observedPorts = []string{"metric", "prom", "health", "probe", "live", "ready", "status", "monitor"}

func checkUncapturedPorts(p *pod) []finding {
	if !p.servesLocalApplication() || p.interceptionMode() == "NONE" {
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
	for _, c := range p.applicationContainers() {
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
	if !p.servesLocalApplication() {
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
