// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/result"
)

var jobRules = []Rule{
	{
		Code: "PR301", Title: "Job never completes", Severity: result.Warning, Mesh: true,
		Why: "A pod that is meant to end is complete when all its containers have ended. A sidecar that is an ordinary container never ends by itself, so " +
			"the Job runs until its deadline, and a CronJob starts no next one or piles them up.",
		Change: "Use native sidecars (nativeSidecars: Enabled, or the annotation sidecar.istio.io/nativeSidecar: \"true\" from Istio 1.24 on). Else let the " +
			"application end the proxy as its last act, with a POST to http://localhost:15020/quitquitquit, and ignore this.",
		Issues: []string{"11045", "6324", "19072", "19567", "istio.io#10316"},
		check:  checkJobCompletes,
	},
}

func checkJobCompletes(p *pod) []finding {
	if !p.completes() {
		return nil
	}
	var out []finding
	for _, c := range p.regular {
		// Only what is known never to end: Istio's proxy and those of databases. Other containers may well end by themselves.
		if c.servesLocally() && !p.mayEnd(c) {
			out = append(out, finding{
				path: c.path, container: c.name,
				message: fmt.Sprintf("%s does not complete: container %s is not a native sidecar and goes on when the application has ended", p.in.Kind, c.name),
			})
			continue
		}
		if p.proxy == nil || c.name != proxyName || p.proxy.init || len(p.apps()) == 0 {
			continue
		}
		if p.quitsProxy() {
			continue
		}
		out = append(out, finding{
			path: c.path, container: c.name,
			message: fmt.Sprintf("%s does not complete: container %s is not a native sidecar and goes on when the application has ended", p.in.Kind, c.name),
		})
	}
	return out
}

// localProxies are images of proxies that serve the application in their pod and never end by themselves: those of Google's
// databases, as their documentation names them.
var localProxies = []string{"/cloud-sql-connectors/cloud-sql-proxy", "/cloudsql-docker/gce-proxy", "/alloydb-connectors/alloydb-auth-proxy"}

// mayEnd reports whether something could end such a proxy: its own endpoint, a command of the user's around it, or another container
// that sees its process. It is also yes for one that has the pod for itself.
func (p *pod) mayEnd(c container) bool {
	shared, _ := p.spec["shareProcessNamespace"].(bool)
	return len(p.regular) < 2 || shared || p.quitsProxy() || len(c.stringList("command")) > 0 || slices.Contains(c.stringList("args"), "--quitquitquit")
}

// servesLocally reports whether the container is such a proxy.
func (c container) servesLocally() bool {
	image, _, _ := strings.Cut(textOf(c.fields["image"]), "@")
	if tag := imageTag(image); tag != "" {
		image = strings.TrimSuffix(image, ":"+tag)
	}
	return slices.ContainsFunc(localProxies, func(name string) bool { return strings.HasSuffix(image, name) })
}

// quitsProxy reports whether a container's command or environment names the agent's endpoint that ends the proxy.
func (p *pod) quitsProxy() bool {
	for _, c := range p.apps() {
		said := append(c.stringList("command"), c.stringList("args")...)
		said = append(said, c.lifecycleHook("preStop").command...)
		list, _ := c.fields["env"].([]any)
		for _, item := range list {
			m, _ := item.(map[string]any)
			said = append(said, textOf(m["value"]))
		}
		if strings.Contains(strings.Join(said, "\n"), "quitquitquit") {
			return true
		}
	}
	return false
}
