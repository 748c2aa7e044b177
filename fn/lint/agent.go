// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// agentCall is a probe or hook that istio-proxy has to be running for.
type agentCall struct {
	at        []string
	rewritten bool
	port      int64
}

func (a agentCall) lastPathSegment() string { return a.at[len(a.at)-1] }

// Paths under which the agent answers in place of a container; %s is its name. Source: pkg/kube/inject/app_probe.go of Istio 1.31.
var agentPaths = map[string]string{
	"startupProbe": "/app-health/%s/startupz", "livenessProbe": "/app-health/%s/livez", "postStart": "/app-lifecycle/%s/poststartz",
}

// callOfAgent returns the probe or hook of the container that cannot succeed before istio-proxy runs.
func callOfAgent(p *pod, c container, at ...string) (agentCall, bool) {
	call := agentCall{at: at}
	handler, _ := c.nestedField(at...).(map[string]any)
	path, known := agentPaths[call.lastPathSegment()]
	httpGet, _ := handler["httpGet"].(map[string]any)
	if known && strings.TrimPrefix(textOf(httpGet["path"]), "/") == strings.TrimPrefix(fmt.Sprintf(path, c.name), "/") {
		call.rewritten = true
		return call, true
	}
	kind, port := networkHandler(c, handler)
	if kind == "" || kind != "httpGet" && call.lastPathSegment() == "postStart" {
		return call, false
	}
	call.port = port
	return call, capturedBefore(p, c) && port != statusPort(p) && capturesInbound(p, port)
}

// capturedBefore reports whether the pod's inbound traffic is captured already when the container starts.
func capturedBefore(p *pod, c container) bool {
	mode := p.interceptionMode()
	if !p.servesLocalApplication() || mode == "NONE" || p.in.Facts.CNI == Unknown && p.capture == nil {
		return false
	}
	return p.capturesWithCNI() || p.capture != nil && (!c.init || p.capture.index < c.index)
}

// precedesProxy reports whether the kubelet starts the container before istio-proxy.
func (p *pod) precedesProxy(c container) bool {
	switch {
	case p.proxy == nil || c.name == proxyName:
		return false
	case c.init != p.proxy.init:
		return c.init
	}
	return c.index < p.proxy.index
}

var (
	startupCall  = []string{"startupProbe"}
	livenessCall = []string{"livenessProbe"}
	postStart    = []string{"lifecycle", "postStart"}
)

func checkWaitsForAgent(p *pod) []finding {
	var out []finding
	for _, c := range p.inits {
		if !c.isNativeSidecar() || !p.precedesProxy(c) {
			continue
		}
		for _, at := range [][]string{startupCall, postStart} {
			call, waits := callOfAgent(p, c, at...)
			if !waits {
				continue
			}
			out = append(out, finding{
				path: c.path + "." + strings.Join(at, "."), container: c.name,
				message: fmt.Sprintf("the pod never starts: the %s of native sidecar %s %s, and the kubelet starts %s only after it has succeeded; %s",
					call.lastPathSegment(), c.name, call.describePrerequisite(), proxyName, waysOut(p, c)),
			})
		}
	}
	out = append(out, waitsByCommand(p)...)
	if textOf(p.spec["restartPolicy"]) == "Never" {
		out = append(out, failedHooks(p, "and with restartPolicy Never the kubelet does not start the container again")...)
	}
	return out
}

// describePrerequisite describes what a call waits for.
func (a agentCall) describePrerequisite() string {
	if a.rewritten {
		return "was rewritten to the agent in " + proxyName
	}
	return fmt.Sprintf("calls port %d, whose traffic is already redirected to %s", a.port, proxyName)
}

// waysOut describes the remedies for a native sidecar that waits for the agent.
func waysOut(p *pod, c container) string {
	off := "set sidecar.istio.io/rewriteAppHTTPProbers: \"false\""
	if capturedBefore(p, c) {
		off += " and add the port to traffic.sidecar.istio.io/excludeInboundPorts"
	}
	return "let a native " + proxyName + " start first, use an exec command, or " + off
}

// failedHooks are the postStart hooks of ordinary containers that the kubelet calls before it starts the proxy.
func failedHooks(p *pod, effect string) []finding {
	var out []finding
	for _, c := range p.regular {
		call, waits := callOfAgent(p, c, postStart...)
		if !waits || !p.precedesProxy(c) {
			continue
		}
		out = append(out, finding{
			path: c.path + ".lifecycle.postStart", container: c.name,
			message: fmt.Sprintf("the postStart hook of container %s %s, which starts after it: the hook fails, the kubelet kills the container, %s",
				c.name, call.describePrerequisite(), effect),
		})
	}
	return out
}

func checkFailsBeforeAgent(p *pod) []finding {
	var out []finding
	if textOf(p.spec["restartPolicy"]) != "Never" {
		out = failedHooks(p, "and starts it again after a delay")
	}
	for _, c := range p.inits {
		if !c.isNativeSidecar() || !p.precedesProxy(c) {
			continue
		}
		call, fails := callOfAgent(p, c, livenessCall...)
		next := longInitAfter(p, c)
		if !fails || next == "" {
			continue
		}
		out = append(out, finding{
			path: c.path + ".livenessProbe", container: c.name,
			message: fmt.Sprintf("the livenessProbe of native sidecar %s %s, which starts after init container %s has ended: if that takes long, the kubelet kills %s meanwhile",
				c.name, call.describePrerequisite(), next, c.name),
		})
	}
	return out
}

// longInitAfter names the first potentially long-running init container between c and the proxy.
func longInitAfter(p *pod, c container) string {
	for _, next := range p.inits[c.index+1:] {
		if next.name == proxyName {
			return ""
		}
		if !next.isNativeSidecar() && !next.isIstioInit() {
			return next.name
		}
	}
	return ""
}

// hasHooks reports whether a pod has a probe, hook or init container that PR208 may be about.
func hasHooks(in *Input) bool {
	spec, _ := in.After["spec"].(map[string]any)
	hooked := func(c map[string]any) bool { return podmap.MapAt(c, "lifecycle", "postStart") != nil }
	if slices.ContainsFunc(podmap.Maps(spec["initContainers"]), func(c map[string]any) bool {
		return textOf(c["name"]) != proxyName && (hooked(c) || c["startupProbe"] != nil || asksAgent(container{fields: c}.programs()))
	}) {
		return true
	}
	return slices.ContainsFunc(podmap.Maps(spec["containers"]), hooked)
}
