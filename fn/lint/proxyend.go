// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// always are the ways in which a shell runs a command after a failure too and keeps the failure as its own code.
var always = lazyregexp.New(`\btrap\b|\bexit\s+"?\$`)

const quitCall = "quitquitquit"

func checkProxyEndsForGood(p *pod) []finding {
	if !p.hasClassicProxy() || !endsForGood(p.restartPolicy()) {
		return nil
	}
	var out []finding
	if h := p.proxy.lifecycleHook("postStart"); h.exists {
		out = append(out, finding{
			path: h.path, container: proxyName,
			message: fmt.Sprintf("if the proxy's postStart hook fails or times out, the proxy ends and restartPolicy %s does not start it again: the application runs without network",
				p.restartPolicy()),
		})
	}
	for _, c := range p.applicationContainers() {
		if path, why := quitsTooEarly(p, c); why != "" {
			out = append(out, finding{
				path: path, container: c.name,
				message: fmt.Sprintf("container %s ends the proxy %s, and restartPolicy %s does not start the proxy again", c.name, why, p.restartPolicy()),
			})
		}
	}
	return out
}

// restartPolicy is the pod's. A Job's has to be written.
func (p *pod) restartPolicy() string {
	if policy := textOf(p.spec["restartPolicy"]); policy != "" {
		return policy
	}
	return "Always"
}

// endsForGood reports whether a container that ends with code 0 is not started again.
func endsForGood(restartPolicy string) bool { return restartPolicy != "Always" }

// quitsTooEarly describes when a container ends the proxy although it will still need it, or returns "" if it does
// not. A container that is not restarted (Never) has no further use for the proxy once its command has ended.
func quitsTooEarly(p *pod, c container) (path, why string) {
	if strings.Contains(c.lifecycleHookText("postStart"), quitCall) {
		return c.path + ".lifecycle.postStart", "as it starts, in its postStart hook"
	}
	if p.restartPolicy() != "OnFailure" {
		return "", ""
	}
	if strings.Contains(c.lifecycleHookText("preStop"), quitCall) && (c.nestedField("livenessProbe") != nil || c.nestedField("startupProbe") != nil) {
		return c.path + ".lifecycle.preStop", "in its preStop hook, which runs before a restart because of a failed probe too"
	}
	line := strings.Join(append(c.stringList("command"), c.stringList("args")...), "\n")
	if strings.Contains(line, quitCall) && always.MatchString(line) {
		return c.path, "after a failure too, and is then started again without it"
	}
	return "", ""
}

// lifecycleHookText returns the whole text of a hook of the container: its command, or the path of its request.
func (c container) lifecycleHookText(name string) string {
	path, _ := c.nestedField("lifecycle", name, "httpGet", "path").(string)
	return c.lifecycleHook(name).commandLine() + "\n" + path
}
