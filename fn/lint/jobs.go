// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

func checkJobCompletes(p *pod) []finding {
	if !p.runsToCompletion() {
		return nil
	}
	var out []finding
	for _, c := range p.regular {
		if outlivesApp(p, c) {
			out = append(out, finding{
				path: c.path, container: c.name,
				message: fmt.Sprintf("%s does not complete: container %s is not a native sidecar and goes on when the application has ended", p.in.Kind, c.name),
			})
		}
	}
	return out
}

// outlivesApp reports whether an ordinary container is known never to end by itself, and is not ended by others. Other
// containers may well end by themselves.
func outlivesApp(p *pod, c container) bool {
	switch {
	case c.servesLocally():
		return !mayEnd(p, c)
	case isEndless(p.injected, c):
		return !mayEndSidecar(p, c)
	}
	return p.proxy != nil && c.name == proxyName && !p.proxy.init && len(p.applicationContainers()) > 0 && !quitsProxy(p)
}

// localProxies are images of proxies that serve the application in their pod and never end by themselves: those of Google's
// databases, as their documentation names them.
var localProxies = []string{"/cloud-sql-connectors/cloud-sql-proxy", "/cloudsql-docker/gce-proxy", "/alloydb-connectors/alloydb-auth-proxy"}

// mayEnd reports whether something could end such a proxy: its own endpoint, a command of the user's around it, or another container
// that sees its process. It is also yes for one that has the pod for itself.
func mayEnd(p *pod, c container) bool {
	return seesAll(p) || quitsProxy(p) || len(c.stringList("command")) > 0 || slices.Contains(c.stringList("args"), "--quitquitquit")
}

// seesAll reports whether no container is isolated from the others: the pod has only one, or they see each other's
// processes.
func seesAll(p *pod) bool {
	shared, _ := p.spec["shareProcessNamespace"].(bool)
	return len(p.regular) < 2 || shared
}

// servesLocally reports whether the container is such a proxy.
func (c container) servesLocally() bool {
	image := imageRepository(textOf(c.fields["image"]))
	return slices.ContainsFunc(localProxies, func(name string) bool { return strings.HasSuffix(image, name) })
}

// quitsProxy reports whether a container's command or environment names the agent's endpoint that ends the proxy, or, where containers see
// each other's processes, the agent itself.
func quitsProxy(p *pod) bool {
	said := containerCommandText(p)
	return strings.Contains(said, quitCall) || seesAll(p) && strings.Contains(said, "pilot-agent")
}

// containerCommandText returns the text of the commands, arguments and variables of the containers besides Istio's
// proxy.
func containerCommandText(p *pod) string {
	var said []string
	for _, c := range p.applicationContainers() {
		said = append(said, c.stringList("command")...)
		said = append(said, c.stringList("args")...)
		said = append(said, c.lifecycleHook("preStop").command...)
		for _, m := range podmap.Maps(c.fields["env"]) {
			said = append(said, textOf(m["value"]))
		}
	}
	return strings.Join(said, "\n")
}
