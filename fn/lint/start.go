// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
)

func checkNoHold(p *pod) []finding {
	if !p.hasClassicProxy() || !p.capturesOutbound() {
		return nil
	}
	h := p.proxy.lifecycleHook("postStart")
	switch {
	case !h.waitsForProxy() && appsWait(p.applicationContainers()):
		return nil
	case !h.exists && holdIsSet(p) && p.proxy.lifecycleHook("preStop").exists:
		return []finding{{
			path: p.proxy.path + ".lifecycle", container: proxyName,
			message: "the application may start before the proxy is ready: holdApplicationUntilProxyStarts is set, and the proxy's own lifecycle " +
				"(values.global.proxy.lifecycle) takes the place of the hook that it sets; add postStart with pilot-agent wait to that lifecycle",
		}}
	case !h.exists && istioBefore(p.in, 7):
		return []finding{{
			path: p.proxy.path, container: proxyName,
			message: "the application may start before the proxy is ready: this version of Istio has nothing that holds it, so it has to wait by itself until http://localhost:15020/healthz/ready answers",
		}}
	case !h.exists:
		return []finding{{
			path: p.proxy.path, container: proxyName,
			message: "the application may start before the proxy is ready: the proxy is not a native sidecar, and nothing holds the application (holdApplicationUntilProxyStarts)",
		}}
	case !h.waitsForProxy():
		return []finding{{
			path: h.path, container: proxyName,
			message: "the application may start before the proxy is ready: the proxy's postStart hook does not wait for it (pilot-agent wait does)",
		}}
	}
	return nil
}

// holdIsSet reports whether holdApplicationUntilProxyStarts is set: by the proxy's config, or by the values, which shows in the place of the proxy.
// The injector puts it in front of the application then and behind it otherwise. Source: reorderPod in pkg/kube/inject/webhook.go of Istio 1.31.
func holdIsSet(p *pod) bool {
	set, _ := p.proxyConfig["holdApplicationUntilProxyStarts"].(bool)
	return set || p.proxy.index == 0 && p.in.Before != nil && p.before[proxyName] == nil
}

// appsWait reports whether every container of the application asks the agent or Envoy by itself whether the proxy is ready.
func appsWait(apps []container) bool {
	for _, c := range apps {
		said := strings.Join(append(c.stringList("command"), c.stringList("args")...), "\n")
		if !strings.Contains(said, "15020/healthz/ready") && !strings.Contains(said, "15021/healthz/ready") {
			return false
		}
	}
	return true
}

// istioBefore reports whether the version of Istio is known and before 1.minor.
func istioBefore(in *Input, minor int) bool {
	v, ok := parseVersion(in.Facts.IstioVersion)
	return ok && v.isBeforeMinor(minor)
}

// waitsForProxy reports whether a hook runs until the proxy is ready: it calls the agent for that, or polls.
func (h hookFacts) waitsForProxy() bool {
	line := h.commandLine()
	return h.loop || strings.Contains(line, "pilot-agent wait") || strings.Contains(line, "ready") || strings.Contains(line, "--retry")
}

func checkBeforeHold(p *pod) []finding {
	if !p.hasClassicProxy() || !p.proxy.lifecycleHook("postStart").exists {
		return nil
	}
	var out []finding
	for _, c := range p.regular[:indexOfContainer(p.regular, proxyName)] {
		out = append(out, finding{
			path: c.path, container: c.name,
			message: fmt.Sprintf("container %s comes before the proxy and so starts without it", c.name),
		})
	}
	return out
}

func checkNativeReady(p *pod) []finding {
	var out []finding
	for _, c := range p.inits {
		if !c.isNativeSidecar() || !p.injected[c.name] && (p.proxy == nil || c.name != proxyName) && !c.servesLocally() || slices.Contains(neverAwaited, c.name) {
			continue
		}
		if c.nestedField("startupProbe") != nil || c.nestedField("lifecycle", "postStart") != nil {
			continue
		}
		message := fmt.Sprintf("native sidecar %s has neither a startupProbe nor a postStart hook: the next container starts before it is ready", c.name)
		if p.precedesProxy(c) {
			message += fmt.Sprintf("; if you add one, use an exec command, as %s starts later and would have to answer any other (PR208)", proxyName)
		}
		out = append(out, finding{path: c.path, container: c.name, message: message})
	}
	return out
}

// neverAwaited are the sidecars whose own injectors set no startupProbe and have no setting for one: vault-agent-init has written the secrets
// before Vault's agent starts, and applications send to OpenTelemetry's collector again.
var neverAwaited = []string{"vault-agent", "otc-container"}

// capturesOutbound reports whether traffic that leaves the pod is redirected to the proxy at all.
func (p *pod) capturesOutbound() bool {
	if !p.servesLocalApplication() || p.interceptionMode() == "NONE" {
		return false
	}
	include, exclude := p.trafficSetting("-i", "includeOutboundIPRanges", "*"), p.trafficSetting("-x", "excludeOutboundIPRanges", "")
	ports := p.trafficSetting("-q", "includeOutboundPorts", "")
	if include == "" && ports == "" {
		return false
	}
	return !slices.Contains(fieldsOf(exclude), "0.0.0.0/0")
}

// trafficSetting reads the source of the capture rules: the arguments of istio-init, or otherwise the annotation.
func (p *pod) trafficSetting(flag, annotation, otherwise string) string {
	if p.capture != nil {
		args := p.capture.stringList("args")
		if slices.Contains(args, flag) {
			return p.capture.flagValue(flag)
		}
	}
	if v, ok := p.annotations["traffic.sidecar.istio.io/"+annotation]; ok {
		return v
	}
	return otherwise
}

// unproxied returns the init containers that end before the proxy runs, have their traffic captured, and are not left out of it.
func unproxied(p *pod, from int) []container {
	until := len(p.inits)
	if p.hasNativeProxy() {
		until = indexOfContainer(p.inits, proxyName)
	}
	var out []container
	for i := from; i < until; i++ {
		c := p.inits[i]
		if c.isNativeSidecar() && !c.needsNetworkAtStart() || c.isIstioInit() || excludedUser(p, c) || bypassesProxy(p, c) {
			continue
		}
		out = append(out, c)
	}
	return out
}

// isIstioInit reports whether the container is one that Istio itself brings and that needs no network.
func (c container) isIstioInit() bool {
	return slices.Contains(istioNames, c.name)
}

// excludedUser reports whether the capture leaves the container alone as it does the proxy.
func excludedUser(p *pod, c container) bool {
	uid, gid := proxyIDs(p)
	if id, _, ok := p.runAs(c, "runAsUser"); ok && id == uid {
		return true
	}
	id, _, ok := p.runAs(c, "runAsGroup")
	return ok && id == gid
}

func checkInitUnderCNI(p *pod) []finding {
	if !p.capturesWithCNI() || !p.capturesOutbound() {
		return nil
	}
	var out []finding
	for _, c := range unproxied(p, 0) {
		out = append(out, finding{
			path: c.path, container: c.name,
			message: fmt.Sprintf("%s runs while its traffic is captured and the proxy does not run yet: what it sends fails%s", c.describeForFindings(), bypassAdvice(p, c)),
		})
	}
	return out
}

func checkInitAfterCapture(p *pod) []finding {
	if p.capturesWithCNI() || p.capture == nil || !p.capturesOutbound() {
		return nil
	}
	var out []finding
	for _, c := range unproxied(p, indexOfContainer(p.inits, p.capture.name)+1) {
		out = append(out, finding{
			path: c.path, container: c.name,
			message: fmt.Sprintf("%s comes after %s and before the proxy: its traffic is captured and goes nowhere%s", c.describeForFindings(), p.capture.name, bypassAdvice(p, c)),
		})
	}
	return out
}

func checkNativeSupported(p *pod) []finding {
	v, ok := parseVersion(p.in.Facts.KubernetesVersion)
	if !ok || !v.isBeforeMinor(29) {
		return nil
	}
	var out []finding
	for _, c := range p.inits {
		if c.isNativeSidecar() && p.injected[c.name] {
			out = append(out, finding{
				path: c.path + ".restartPolicy", container: c.name, current: "Always",
				message: fmt.Sprintf("native sidecar %s needs Kubernetes 1.29, and the oldest kubelet is %s", c.name, p.in.Facts.KubernetesVersion),
			})
		}
	}
	return out
}

func checkNoContainer(p *pod) []finding {
	if p.proxy == nil || len(p.regular) > 0 {
		return nil
	}
	return []finding{{
		path:    "spec.containers",
		message: "no container is left, as " + proxyName + " was the only one and is a native sidecar now: the API server refuses the pod",
	}}
}

// indexOfContainer returns the index in the list of the container with the name, or the length of the list if none has
// it.
func indexOfContainer(list []container, name string) int {
	if i := slices.IndexFunc(list, func(c container) bool { return c.name == name }); i >= 0 {
		return i
	}
	return len(list)
}
