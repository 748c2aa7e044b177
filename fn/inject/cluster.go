// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/feature"
)

const (
	clusterEnv   = istio.ClusterVariable
	networkEnv   = istio.NetworkVariable
	networkLabel = "topology.istio.io/network"
)

// setClusterEnvs puts variables at the end of the proxy's, in order of their names, in place of those of the template.
func setClusterEnvs(proxy map[string]any, envs map[string]string) {
	if proxy == nil || len(envs) == 0 {
		return
	}
	env, _ := proxy["env"].([]any)
	kept := make([]any, 0, len(env)+len(envs))
	for _, e := range env {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		if _, ours := envs[name]; !ours {
			kept = append(kept, e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(envs)) {
		kept = append(kept, envVar(name, envs[name]))
	}
	proxy["env"] = kept
}

// injectedProxyContainer returns the injected istio-proxy, or nil.
func injectedProxyContainer(in *istio.Injector, p *pod) map[string]any {
	return p.findProxyContainer(in.Profile().Has(feature.NativeSidecars))
}

func envVar(name, value string) map[string]any { return map[string]any{"name": name, "value": value} }

// addEnv appends a variable to a container.
func addEnv(c map[string]any, name, value string) {
	env, _ := c["env"].([]any)
	c["env"] = append(env, envVar(name, value))
}
