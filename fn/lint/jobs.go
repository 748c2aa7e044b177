// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"

	"github.com/prerig/prerig/fn/result"
)

var jobRules = []Rule{
	{
		Code: "PR301", Title: "Job never completes", Severity: result.Warning,
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
		// Only what is known never to end: Istio's proxy. Other injected containers may well end by themselves.
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
