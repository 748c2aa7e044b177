// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/internal/lazyregexp"
)

var (
	// agentAddress is where pilot-agent and Envoy answer in the pod: status and merged metrics, the health check,
	// Envoy's administration.
	agentAddress = lazyregexp.New(`\bpilot-agent\s+wait\b|(?:localhost|127\.0\.0\.1|\[::1\]):(?:15000|15020|15021)\b`)
	// givesUp are words of a loop that may end although what it waits for has not come.
	givesUp = lazyregexp.New(`\b(?:break|exit|timeout|return)\b`)
)

// asksAgent reports whether a command calls the agent or Envoy.
func asksAgent(command []string) bool { return agentAddress.MatchString(strings.Join(command, " ")) }

// blocksOnAgent reports whether a command ends only after the agent or Envoy has answered.
func blocksOnAgent(command []string) bool {
	line := strings.Join(command, " ")
	switch {
	case !agentAddress.MatchString(line) || givesUp.MatchString(line):
		return false
	case strings.Contains(line, "pilot-agent wait"):
		return true
	}
	return loopWord.MatchString(line)
}

// programs are the command and the arguments of the container.
func (c container) programs() []string {
	return append(c.stringList("command"), c.stringList("args")...)
}

// execCommand is what a probe or hook runs in the container; nil where it runs no command.
func (c container) execCommand(at ...string) []string {
	handler, _ := c.nestedField(at...).(map[string]any)
	return container{fields: podmap.MapAt(handler, "exec")}.stringList("command")
}

// waitsByCommand finds the containers in front of istio-proxy that run a command which waits for it. The kubelet
// starts istio-proxy only after an ordinary init container has ended, the startupProbe or postStart hook of a
// native sidecar has succeeded, or the postStart hook of an ordinary container has ended.
func waitsByCommand(p *pod) []finding {
	if !p.servesLocalApplication() {
		return nil
	}
	const native = "let a native " + proxyName + " start first"
	var out []finding
	report := func(c container, path, what, until, remedy string) {
		out = append(out, finding{
			path: path, container: c.name,
			message: fmt.Sprintf("the pod never starts: %s waits for %s, which the kubelet starts only after %s; %s", what, proxyName, until, remedy),
		})
	}
	for _, c := range p.inits {
		switch {
		case !p.precedesProxy(c) || c.isIstioInit():
		case !c.isNativeSidecar():
			if blocksOnAgent(c.programs()) {
				report(c, c.path, "init container "+c.name, "it has ended", native+", or have the application wait instead")
			}
		case asksAgent(c.execCommand(startupCall...)):
			report(c, c.path+".startupProbe", "the startupProbe of native sidecar "+c.name, "it has succeeded", native+", or probe the sidecar alone")
		case blocksOnAgent(c.execCommand(postStart...)):
			report(c, c.path+".lifecycle.postStart", "the postStart hook of native sidecar "+c.name, "it has ended", native+", or remove the wait")
		}
	}
	for _, c := range p.regular {
		if p.precedesProxy(c) && blocksOnAgent(c.execCommand(postStart...)) {
			report(c, c.path+".lifecycle.postStart", "the postStart hook of container "+c.name, "it has ended",
				native+", or set holdApplicationUntilProxyStarts instead of the hook")
		}
	}
	return out
}
