// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/istio"
)

const (
	clusterEnv   = "ISTIO_META_CLUSTER_ID"
	networkEnv   = "ISTIO_META_NETWORK"
	networkLabel = "topology.istio.io/network"
)

// clusterEnvs are the proxy's variables for its cluster and network: what the values say, over that the injection URL, over
// that the pod's label for the network. What else the URL gives goes with them from 1.8 on.
func clusterEnvs(in *istio.Injector, p *pod) map[string]string {
	envs := map[string]string{}
	if in.Profile().Has(istio.VariablesOfURL) {
		maps.Copy(envs, in.URLEnv())
	}
	if v := first(in.URLCluster(), in.Values().String("global", "multiCluster", "clusterName")); v != "" {
		envs[clusterEnv] = v
	}
	network := first(in.URLNetwork(), in.Values().String("global", "network"))
	if label, ok := p.label(networkLabel); ok {
		network = label
	}
	if network != "" {
		envs[networkEnv] = network
	} else if url := in.URLNetwork(); url != "" {
		envs[networkEnv] = url
	}
	return envs
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// setClusterEnvs puts the variables at the end of the proxy's, in order of their names, in place of those of the template.
func (r *run) setClusterEnvs() {
	proxy := r.proxy()
	if proxy == nil || len(r.envs) == 0 {
		return
	}
	env, _ := proxy["env"].([]any)
	kept := make([]any, 0, len(env)+len(r.envs))
	for _, e := range env {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		if _, ours := r.envs[name]; !ours {
			kept = append(kept, e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.envs)) {
		kept = append(kept, envVar(name, r.envs[name]))
	}
	proxy["env"] = kept
}

// proxy is the injected istio-proxy, or nil.
func (r *run) proxy() map[string]any { return r.pod.proxy(r.profile.Has(istio.NativeSidecars)) }

func envVar(name, value string) map[string]any { return map[string]any{"name": name, "value": value} }

// addEnv appends a variable to a container.
func addEnv(c map[string]any, name, value string) {
	env, _ := c["env"].([]any)
	c["env"] = append(env, envVar(name, value))
}
