// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/result"
)

var startRules = []Rule{
	{
		Code: "PR201", Title: "Application may start before the proxy", Severity: result.Warning, Audience: Operators, Mesh: true,
		Why: "Traffic is captured from the first container on, and the proxy is an ordinary container: nothing makes the application wait until it is ready. " +
			"What the application sends before that fails.",
		Change: "Use a native sidecar (from Istio 1.19 on), or set holdApplicationUntilProxyStarts (from 1.7 on; mesh config, proxy.istio.io/config, or " +
			"values.global.proxy). Before 1.7, have the application wait until http://localhost:15020/healthz/ready answers.",
		Issues: []string{"11130"},
		check:  checkNoHold,
	},
	{
		Code: "PR202", Title: "Container starts before the proxy that is to hold it", Severity: result.Warning, Audience: Operators,
		Why: "The kubelet starts containers in the order of the list and waits for the postStart hook of each. A container in front of the proxy " +
			"is not held by the proxy's hook.",
		Change: "Move the proxy to the front of spec.containers, or use a native sidecar.",
		check:  checkBeforeHold,
	},
	{
		Code: "PR203", Title: "Native sidecar without startupProbe or postStart", Severity: result.Warning, Mesh: true,
		Why: "The kubelet goes on to the next container as soon as a native sidecar runs, unless a startupProbe or a postStart hook says when it is " +
			"ready. Without one the application may start before the sidecar can serve it.",
		Change: "Add a startupProbe (values.global.proxy.startupProbe.enabled for Istio, which also needs a status port) or a postStart hook. If istio-proxy starts " +
			"later than the sidecar, use an exec command for it: Istio rewrites other probes and hooks to istio-proxy, and the pod would never start (PR208).",
		Issues: []string{"47207"},
		check:  checkNativeReady,
	},
	{
		Code: "PR204", Title: "Init container runs without network under Istio CNI", Severity: result.Warning, Audience: Applications,
		Why: "The CNI plugin captures the pod's traffic before the first init container. Until the proxy runs, what an init container sends goes nowhere.",
		Change: "Use a native proxy, which starts before the other init containers. Else let the init container run as user 1337, or exclude what it talks to " +
			"(traffic.sidecar.istio.io/excludeOutboundPorts or excludeOutboundIPRanges). If Istio captures DNS requests (ISTIO_META_DNS_CAPTURE), excluded ports do " +
			"not help, as names are not resolved: use user 1337, or exclude the addresses and connect to them by address. If it needs no network, ignore this.",
		Issues: []string{"38354", "istio.io/docs/setup/additional-setup/cni"},
		check:  checkInitUnderCNI,
	},
	{
		Code: "PR205", Title: "Init container after istio-init", Severity: result.Warning, Mesh: true,
		Why: "istio-init captures the pod's traffic. An init container that another injector puts after it, and before the proxy runs, has no network.",
		Change: "Let the other injector put its init container first, or inject it at build time in front of Istio, or use a native proxy. Else let it run as user " +
			"1337, or exclude what it talks to as for PR204. If it needs no network, ignore this.",
		Issues: []string{"38354", "43074", "45233"},
		check:  checkInitAfterCapture,
	},
	{
		Code: "PR206", Title: "Native sidecar on a cluster that does not know it", Severity: result.Error, Audience: Operators, Mesh: true,
		Why: "Kubernetes before 1.29 does not start sidecars among the init containers unless a feature gate is set: the init container never ends, and " +
			"the application never starts.",
		Change: "Set nativeSidecars to Disabled, or raise kubernetesVersion if no kubelet is older.",
		check:  checkNativeSupported,
	},
	{
		Code: "PR207", Title: "Pod without a container", Severity: result.Error,
		Why:    "With a native sidecar, a pod whose only container was istio-proxy has nothing left in spec.containers. The API server refuses it.",
		Change: "For a gateway use the gateway template (inject.istio.io/templates: gateway); else set sidecar.istio.io/nativeSidecar to \"false\".",
		check:  checkNoContainer,
	},
}

func checkNoHold(p *pod) []finding {
	if !p.classic() || !p.capturesOutbound() {
		return nil
	}
	h := p.proxy.lifecycleHook("postStart")
	switch {
	case !h.waits() && p.appsWait():
		return nil
	case !h.exists && p.holds() && p.proxy.lifecycleHook("preStop").exists:
		return []finding{{
			path: p.proxy.path + ".lifecycle", container: proxyName,
			message: "the application may start before the proxy is ready: holdApplicationUntilProxyStarts is set, and the proxy's own lifecycle " +
				"(values.global.proxy.lifecycle) takes the place of the hook that it sets; add postStart with pilot-agent wait to that lifecycle",
		}}
	case !h.exists && p.istioBefore(7):
		return []finding{{
			path: p.proxy.path, container: proxyName,
			message: "the application may start before the proxy is ready: this version of Istio has nothing that holds it, so it has to wait by itself until http://localhost:15020/healthz/ready answers",
		}}
	case !h.exists:
		return []finding{{
			path: p.proxy.path, container: proxyName,
			message: "the application may start before the proxy is ready: the proxy is not a native sidecar, and nothing holds the application (holdApplicationUntilProxyStarts)",
		}}
	case !h.waits():
		return []finding{{
			path: h.path, container: proxyName,
			message: "the application may start before the proxy is ready: the proxy's postStart hook does not wait for it (pilot-agent wait does)",
		}}
	}
	return nil
}

// holds reports whether holdApplicationUntilProxyStarts is set: by the proxy's config, or by the values, which shows in the place of the proxy.
// The injector puts it in front of the application then and behind it otherwise. Source: reorderPod in pkg/kube/inject/webhook.go of Istio 1.31.
func (p *pod) holds() bool {
	set, _ := p.proxyConfig["holdApplicationUntilProxyStarts"].(bool)
	return set || p.proxy.index == 0 && p.in.Before != nil && p.before[proxyName] == nil
}

// appsWait reports whether every container of the application asks the agent or Envoy by itself whether the proxy is ready.
func (p *pod) appsWait() bool {
	for _, c := range p.apps() {
		said := strings.Join(append(c.stringList("command"), c.stringList("args")...), "\n")
		if !strings.Contains(said, "15020/healthz/ready") && !strings.Contains(said, "15021/healthz/ready") {
			return false
		}
	}
	return true
}

// istioBefore reports whether the version of Istio is known and before 1.minor.
func (p *pod) istioBefore(minor int) bool {
	v, ok := parseVersion(p.in.Facts.IstioVersion)
	return ok && v.before(minor)
}

// waits reports whether a hook runs until the proxy is ready: it calls the agent for that, or polls.
func (h hookFacts) waits() bool {
	line := h.line()
	return h.loop || strings.Contains(line, "pilot-agent wait") || strings.Contains(line, "ready") || strings.Contains(line, "--retry")
}

func checkBeforeHold(p *pod) []finding {
	if !p.classic() || !p.proxy.lifecycleHook("postStart").exists {
		return nil
	}
	var out []finding
	for _, c := range p.regular[:p.position(p.regular, proxyName)] {
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
		if !c.native() || !p.injected[c.name] && (p.proxy == nil || c.name != proxyName) && !c.servesLocally() || slices.Contains(neverAwaited, c.name) {
			continue
		}
		if c.field("startupProbe") != nil || c.field("lifecycle", "postStart") != nil {
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
	if !p.sidecar() || p.interceptionMode() == "NONE" {
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
func (p *pod) unproxied(from int) []container {
	until := len(p.inits)
	if p.native() {
		until = p.position(p.inits, proxyName)
	}
	var out []container
	for i := from; i < until; i++ {
		c := p.inits[i]
		if c.native() && !c.callsOut() || p.istioOwn(c) || p.excludedUser(c) || p.bypassesProxy(c) {
			continue
		}
		out = append(out, c)
	}
	return out
}

// istioOwn reports whether an init container is one that Istio itself brings and that needs no network.
func (p *pod) istioOwn(c container) bool {
	return slices.Contains(istioNames, c.name)
}

// excludedUser reports whether the capture leaves the container alone as it does the proxy.
func (p *pod) excludedUser(c container) bool {
	uid, gid := p.proxyIDs()
	if id, _, ok := p.runAs(c, "runAsUser"); ok && id == uid {
		return true
	}
	id, _, ok := p.runAs(c, "runAsGroup")
	return ok && id == gid
}

func checkInitUnderCNI(p *pod) []finding {
	if !p.cni() || !p.capturesOutbound() {
		return nil
	}
	var out []finding
	for _, c := range p.unproxied(0) {
		out = append(out, finding{
			path: c.path, container: c.name,
			message: fmt.Sprintf("%s runs while its traffic is captured and the proxy does not run yet: what it sends fails%s", c.described(), p.bypassAdvice(c)),
		})
	}
	return out
}

func checkInitAfterCapture(p *pod) []finding {
	if p.cni() || p.capture == nil || !p.capturesOutbound() {
		return nil
	}
	var out []finding
	for _, c := range p.unproxied(p.position(p.inits, p.capture.name) + 1) {
		out = append(out, finding{
			path: c.path, container: c.name,
			message: fmt.Sprintf("%s comes after %s and before the proxy: its traffic is captured and goes nowhere%s", c.described(), p.capture.name, p.bypassAdvice(c)),
		})
	}
	return out
}

func checkNativeSupported(p *pod) []finding {
	v, ok := parseVersion(p.in.Facts.KubernetesVersion)
	if !ok || !v.before(29) {
		return nil
	}
	var out []finding
	for _, c := range p.inits {
		if c.native() && p.injected[c.name] {
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

// position returns the index in the list of the container with the name, or the length of the list if none has it.
func (p *pod) position(list []container, name string) int {
	if i := slices.IndexFunc(list, func(c container) bool { return c.name == name }); i >= 0 {
		return i
	}
	return len(list)
}
