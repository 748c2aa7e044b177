// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/podvalidation"
	"github.com/prerig/prerig/fn/result"
)

var injectionRules = []Rule{
	{
		Code: "PR601", Title: "image: auto in a pod that is not injected", Severity: result.Warning, Audience: Applications,
		Why: "The image auto is a mark that the injector replaces. The pod was not injected, so the kubelet looks for an image of that name, on Docker Hub " +
			"as a rule, and the container never starts.",
		Change:    "Find out why the pod is not injected (its decision says so): a label, the revision or the template. If the cluster's own webhook is to inject it, ignore this.",
		Analyzers: []string{"IST0146", "IST0147"},
		Issues:    []string{"53290", "46307", "33512", "37482", "35789", "36650", "58911", "56294"},
		check:     checkImageAuto,
	},
	{
		Code: "PR608", Title: "inject: \"false\" with Istio CNI", Severity: result.Error,
		Why: "The CNI plugin leaves a pod alone whose label or annotation sidecar.istio.io/inject is false, and there is no istio-init to do its work. The " +
			"proxy runs, and no traffic goes through it: no mutual TLS, no policy.",
		Change: "Do not mark injected pods with inject: \"false\" (runtimeWebhook: Keep); keep the cluster's webhook away by namespace labels or a " +
			"neverInjectSelector instead.",
		check: checkInjectFalseCNI,
	},
	{
		Code: "PR609", Title: "Probe that the capture of traffic breaks", Severity: result.Warning,
		Why: "The kubelet is not in the mesh. Its HTTP and gRPC probes to a captured port are refused as soon as mutual TLS is strict, and a TCP probe always " +
			"succeeds, because the proxy accepts the connection whether or not the application does.",
		Change: "Let the injector rewrite probes (remove sidecar.istio.io/rewriteAppHTTPProbers: \"false\"; set " +
			"values.sidecarInjectorWebhook.rewriteAppHTTPProbe), use an exec probe, or leave the port out with traffic.sidecar.istio.io/excludeInboundPorts.",
		Issues: []string{"2628", "57386"},
		check:  checkProbes,
	},
	{
		Code: "PR610", Title: "Application uses a port of the proxy", Severity: result.Warning, Audience: Applications,
		Why: "Envoy and pilot-agent listen on ports of their own in the pod's network. An application that listens on one of them fails to start, or takes it " +
			"from the proxy.",
		Change: "Use another port for the application.",
		Issues: []string{"istio.io/docs/ops/deployment/application-requirements"},
		check:  checkReservedPorts,
	},
	{
		Code: "PR611", Title: "Containers that the API server refuses", Severity: result.Error,
		Why: "Names of containers are unique in a pod, init containers included, and each has an image. A template that was written for an ordinary sidecar leaves a second, " +
			"empty istio-proxy behind when the proxy becomes a native sidecar.",
		Change: "Write the template for the place where the proxy is (with .NativeSidecars, Istio 1.27 and later), or set nativeSidecars to Disabled.",
		check:  checkContainerNames,
	},
	{
		Code: "PR612", Title: "Proxy version that the control plane does not support", Severity: result.Warning, Mesh: true,
		Why: "Istio supports a control plane that is one minor version ahead of the proxies, and none that is behind them. Pods that were injected and " +
			"committed keep their proxy until they are injected again.",
		Change:    "Inject again with the control plane's version; remove sidecar.istio.io/proxyImage where it holds an old one.",
		Analyzers: []string{"IST0105"},
		Issues:    []string{"60486", "34135", "38145"},
		check:     checkProxySkew,
	},
	{
		Code: "PR618", Title: "Annotation that writes YAML into the pod", Severity: result.Error, Audience: Applications,
		Why: "Templates of Istio before its fix of August 2026, and of users, print the values of some annotations without quotes. A value with a quote, a line break or " +
			"a colon then adds fields to the injected containers, such as another image or more privileges, which no reviewer sees in the annotation.",
		Change: "Write the annotation as one plain value, or leave it out; whoever writes the templates prints it with quote. The built-in policy istio quotes these values.",
		Issues: []string{"61215"},
		check:  checkUnquoted,
	},
	{
		Code: "PR622", Title: "Injected pod that the API server refuses", Severity: result.Error,
		Why: "The API server validates every field of a pod, and refuses one with a mount without its volume, a volume with two sources, an invalid port, probe, hook, " +
			"variable or label. An annotation such as sidecar.istio.io/userVolumeMount, a custom template or a sidecar's template can cause that. For the pods of a " +
			"controller the error shows only on the ReplicaSet or Job.",
		Change: "Correct the annotation or the template that sets the field.",
		Issues: []string{"kumahq/kuma#17588"},
		check:  checkRejected,
	},
}

func checkImageAuto(p *pod) []finding {
	var out []finding
	for _, c := range p.all() {
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
	if p.proxy == nil || !p.cni() || p.interceptionMode() == "NONE" {
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
func (p *pod) capturesInbound(port int64) bool {
	text := strconv.FormatInt(port, 10)
	exclude := fieldsOf(p.trafficSetting("-d", "excludeInboundPorts", ""))
	if slices.Contains(exclude, text) {
		return false
	}
	include := fieldsOf(p.trafficSetting("-b", "includeInboundPorts", "*"))
	return slices.Contains(include, "*") || slices.Contains(include, text)
}

// statusPort returns the agent's port, which rewritten probes target.
func (p *pod) statusPort() int64 {
	if n, err := strconv.ParseInt(p.annotations["status.sidecar.istio.io/port"], 10, 64); err == nil {
		return n
	}
	if n, ok := integerOf(p.proxyConfig["statusPort"]); ok {
		return n
	}
	if n, err := strconv.ParseInt(p.proxy.flagValue("--statusPort"), 10, 64); err == nil {
		return n
	}
	return 15020
}

// Handlers that the kubelet calls over the network. Istio rewrites hooks from 1.25 on only.
var kubeletCalls = [][]string{
	{"readinessProbe"}, {"livenessProbe"}, {"startupProbe"}, {"lifecycle", "postStart"}, {"lifecycle", "preStop"},
}

func checkProbes(p *pod) []finding {
	if !p.sidecar() || p.interceptionMode() == "NONE" {
		return nil
	}
	var out []finding
	for _, c := range p.all() {
		if c.name == proxyName || p.istioOwn(c) || p.injected[c.name] {
			continue
		}
		for _, at := range kubeletCalls {
			handler, _ := c.field(at...).(map[string]any)
			kind, port := networkHandler(c, handler)
			if kind == "" || port == p.statusPort() || !p.capturesInbound(port) {
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
	if !p.sidecar() {
		return nil
	}
	var out []finding
	for _, c := range p.apps() {
		if p.injected[c.name] {
			continue
		}
		ports, _ := c.fields["ports"].([]any)
		for i, item := range ports {
			m, _ := item.(map[string]any)
			if n, ok := integerOf(m["containerPort"]); ok && slices.Contains(reservedPorts, n) && textOf(m["protocol"]) != "UDP" {
				out = append(out, finding{
					path: fmt.Sprintf("%s.ports[%d].containerPort", c.path, i), container: c.name, current: n,
					message: fmt.Sprintf("container %s uses port %d, which the proxy listens on", c.name, n),
				})
			}
		}
	}
	return out
}

// checkContainerNames leaves out the images of the user's own containers: one without an image is a patch, whose file no run names, and not
// for a cluster.
func checkContainerNames(p *pod) []finding {
	if len(p.injected) == 0 {
		return nil
	}
	return slices.DeleteFunc(p.problemsOf(podvalidation.CodeContainer), func(f finding) bool {
		return f.current == nil && !p.injected[f.container]
	})
}

// checkRejected reports what else the API server rejects in the injected containers, and in what injection has added to the pod.
func checkRejected(p *pod) []finding { return p.addedProblems(podvalidation.CodeRejected) }

// proxyVersion reads the minor version from the image's tag. Images that are not Istio's own have versions of their own.
func (p *pod) proxyVersion() (versionNumber, bool) {
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
	proxy, ok := p.proxyVersion()
	if !ok {
		return nil
	}
	planes, said := p.in.Facts.ControlPlanes, "the control plane among the files (%s)"
	if len(planes) == 0 {
		planes, said = []string{p.in.Facts.IstioVersion}, "the control plane, which is %s by the policy or --istio-version"
	}
	var message string
	for _, text := range planes {
		plane, ok := parseVersion(text)
		switch {
		case !ok || proxy.major != plane.major:
			return nil
		case proxy.minor > plane.minor:
			message = fmt.Sprintf("the proxy is version %s, newer than "+said, proxy, plane)
		case proxy.minor < plane.minor-SupportedSkew:
			message = fmt.Sprintf("the proxy is version %s, more than one minor version older than "+said, proxy, plane)
		default:
			return nil
		}
	}
	return []finding{{
		path: p.proxy.path + ".image", container: proxyName, current: p.proxy.fields["image"], message: message,
	}}
}
