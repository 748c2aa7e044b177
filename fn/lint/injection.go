// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/podvalidation"
)

func checkImageAuto(p *pod) []finding {
	var out []finding
	for _, c := range p.allContainers() {
		if textOf(c.fields["image"]) == "auto" {
			out = append(out, finding{
				path: c.path + ".image", container: c.name, current: "auto",
				message: fmt.Sprintf("container %s has the image auto, which only an injector replaces: nothing can be pulled", c.name),
			})
		}
	}
	return out
}

func checkInjectFalseCNI(p *pod) []finding {
	if p.proxy == nil || !p.capturesWithCNI() || p.interceptionMode() == "NONE" {
		return nil
	}
	const key = "sidecar.istio.io/inject"
	for _, place := range []struct {
		values map[string]string
		path   string
	}{{p.labels, labelPath(key)}, {p.annotations, annotationPath(key)}} {
		if place.values[key] == "false" {
			return []finding{{
				path: place.path, current: "false",
				message: key + " is false on an injected pod: the Istio CNI plugin leaves it alone, and its traffic bypasses the proxy",
			}}
		}
	}
	return nil
}

// capturesInbound reports whether traffic to a port is redirected to the proxy.
func capturesInbound(p *pod, port int64) bool {
	text := strconv.FormatInt(port, 10)
	exclude := fieldsOf(p.trafficSetting("-d", "excludeInboundPorts", ""))
	if slices.Contains(exclude, text) {
		return false
	}
	include := fieldsOf(p.trafficSetting("-b", "includeInboundPorts", "*"))
	return slices.Contains(include, "*") || slices.Contains(include, text)
}

// statusPort returns the agent's port, which rewritten probes target.
func statusPort(p *pod) int64 {
	if n, err := strconv.ParseInt(p.annotations[statusPortAnnotation], 10, 64); err == nil {
		return n
	}
	if n, ok := integerOf(p.proxyConfig["statusPort"]); ok {
		return n
	}
	if n, err := strconv.ParseInt(p.proxy.flagValue("--statusPort"), 10, 64); err == nil {
		return n
	}
	return defaultStatusPort
}

const (
	statusPortAnnotation = "status.sidecar.istio.io/port"
	defaultStatusPort    = 15020
)

// Handlers that the kubelet calls over the network. Istio rewrites hooks from 1.25 on only.
var kubeletCalls = [][]string{
	{"readinessProbe"}, {"livenessProbe"}, {"startupProbe"}, {"lifecycle", "postStart"}, {"lifecycle", "preStop"},
}

func checkProbes(p *pod) []finding {
	if !p.servesLocalApplication() || p.interceptionMode() == "NONE" {
		return nil
	}
	var out []finding
	for _, c := range p.allContainers() {
		if c.name == proxyName || c.isIstioInit() || p.injected[c.name] {
			continue
		}
		for _, at := range kubeletCalls {
			handler, _ := c.nestedField(at...).(map[string]any)
			kind, port := networkHandler(c, handler)
			if kind == "" || port == statusPort(p) || !capturesInbound(p, port) {
				continue
			}
			effect := "it is refused where mutual TLS is strict"
			if kind == "tcpSocket" {
				effect = "the proxy answers it whether or not the application listens"
			}
			out = append(out, finding{
				path: c.path + "." + strings.Join(at, ".") + "." + kind, container: c.name, current: port,
				message: fmt.Sprintf("the %s of container %s calls port %d, whose traffic is captured, and is not rewritten: %s", at[len(at)-1], c.name, port, effect),
			})
		}
	}
	return out
}

// networkHandler returns the kind of a handler that the kubelet calls on the pod's own address, and its port; "" for any other.
func networkHandler(c container, handler map[string]any) (kind string, port int64) {
	for _, kind := range []string{"httpGet", "tcpSocket", "grpc"} {
		h, ok := handler[kind].(map[string]any)
		if !ok || textOf(h["host"]) != "" {
			continue
		}
		if n, ok := integerOf(h["port"]); ok {
			return kind, n
		}
		ports, _ := c.fields["ports"].([]any)
		for _, item := range ports {
			m, _ := item.(map[string]any)
			if n, ok := integerOf(m["containerPort"]); ok && textOf(m["name"]) == textOf(h["port"]) && textOf(h["port"]) != "" {
				return kind, n
			}
		}
	}
	return "", 0
}

// reservedPorts are those of the sidecar, from Istio's list of ports used by the sidecar proxy. 15443 and the ports of the
// control plane are not among them.
var reservedPorts = []int64{15000, 15001, 15004, 15006, 15008, 15020, 15021, 15053, 15090}

func checkReservedPorts(p *pod) []finding {
	if !p.servesLocalApplication() {
		return nil
	}
	var out []finding
	for _, c := range p.applicationContainers() {
		if p.injected[c.name] {
			continue
		}
		ports, _ := c.fields["ports"].([]any)
		for i, item := range ports {
			m, _ := item.(map[string]any)
			n, ok := integerOf(m["containerPort"])
			switch {
			case !ok || textOf(m["protocol"]) == "UDP":
			case slices.Contains(reservedPorts, n):
				out = append(out, finding{
					path: fmt.Sprintf("%s.ports[%d].containerPort", c.path, i), container: c.name, current: n,
					message: fmt.Sprintf("container %s uses port %d, which the proxy listens on", c.name, n),
				})
			case n == statusPort(p):
				f := statusPortFinding(p, fmt.Sprintf("is %d, the port of container %s", n, c.name))
				f.container = c.name
				out = append(out, f)
			}
		}
	}
	if n := statusPort(p); n != defaultStatusPort && slices.Contains(reservedPorts, n) {
		out = append(out, statusPortFinding(p, fmt.Sprintf("is %d, a port that the proxy itself listens on", n)))
	}
	return out
}

// statusPortFinding is about the port of the agent. It is at the setting, where the pod has it.
func statusPortFinding(p *pod, problem string) finding {
	const fix = ": the proxy's agent cannot listen on it and the pod is never ready; choose another port, or remove the setting, which leaves 15020"
	for _, key := range []string{statusPortAnnotation, "proxy.istio.io/config"} {
		value := p.annotations[key]
		if value == "" || key != statusPortAnnotation && !strings.Contains(value, "statusPort") {
			continue
		}
		what := "annotation " + key
		if key != statusPortAnnotation {
			what = "statusPort of the annotation " + key
		}
		return finding{path: annotationPath(key), current: value, message: what + " " + problem + fix}
	}
	return finding{message: "statusPort of the mesh config " + problem + fix}
}

// checkContainerNames leaves out the images of the user's own containers: one without an image is a patch, whose file no run names, and not
// for a cluster.
func checkContainerNames(p *pod) []finding {
	if len(p.injected) == 0 {
		return nil
	}
	return slices.DeleteFunc(problemsOf(p, podvalidation.CodeContainer), func(f finding) bool {
		return f.current == nil && !p.injected[f.container]
	})
}

// checkRejected reports the remaining fields that the API server rejects in the injected containers, and in what
// injection has added to the pod, and in the probes that it replaces.
func checkRejected(p *pod) []finding {
	return append(addedProblems(p, podvalidation.CodeRejected), hiddenProblems(p)...)
}

// proxyVersion reads the minor version from the image's tag. Images that are not Istio's own have versions of their own.
func proxyVersion(p *pod) (versionNumber, bool) {
	if p.proxy == nil {
		return versionNumber{}, false
	}
	image := textOf(p.proxy.fields["image"])
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		name = name[:i]
	}
	if !strings.HasPrefix(name[strings.LastIndex(name, "/")+1:], "proxyv2") {
		return versionNumber{}, false
	}
	v, ok := parseVersion(imageTag(image))
	return v, ok && v.major == 1
}

// SupportedSkew is how many minor versions a proxy of Istio may be older than its control plane.
const SupportedSkew = 1

func checkProxySkew(p *pod) []finding {
	proxy, ok := proxyVersion(p)
	if !ok {
		return nil
	}
	facts := p.in.Facts
	planes := facts.ControlPlanes
	if len(planes) == 0 {
		planes = []string{facts.IstioVersion}
	}
	var message string
	for _, text := range planes {
		plane, ok := parseVersion(text)
		switch {
		case !ok || proxy.major != plane.major:
			return nil
		case proxy.minor > plane.minor:
			message = fmt.Sprintf("the proxy is version %s, newer than %s", proxy, facts.describePlane(plane))
		case proxy.minor < plane.minor-SupportedSkew:
			message = fmt.Sprintf("the proxy is version %s, more than one minor version older than %s", proxy, facts.describePlane(plane))
		default:
			return nil
		}
	}
	return []finding{{
		path: p.proxy.path + ".image", container: proxyName, current: p.proxy.fields["image"], message: message,
	}}
}

// describePlane describes a version of the control plane, with its source.
func (f Facts) describePlane(version versionNumber) string {
	if len(f.ControlPlanes) > 0 {
		return fmt.Sprintf("the control plane among the files (%s)", version)
	}
	return fmt.Sprintf("the control plane, which is %s by %s", version, cmp.Or(f.IstioVersionFrom, "the policy"))
}
