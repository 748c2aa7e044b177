// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"maps"

	"github.com/prerig/prerig/fn/istio/feature"
)

// checkURL warns of settings of the injection URL that the version does not read.
func (in *Injector) checkURL() {
	if given := len(in.opts.ProxyEnv) > 0 || in.opts.Cluster != "" || in.opts.Network != ""; !given {
		return
	}
	p := in.profile
	switch {
	case !p.Has(feature.ClusterFromURL):
		in.warnings = append(in.warnings, fmt.Sprintf("Istio %s reads nothing from the injection URL: cluster, network and proxyEnv are ignored", p.release))
	case p.Has(feature.ClusterOnlyBoth) && (in.opts.Cluster == "" || in.opts.Network == ""):
		in.warnings = append(in.warnings, fmt.Sprintf("Istio %s reads cluster and network from the injection URL only where it has both: what is given of them is ignored", p.release))
	case !p.Has(feature.VariablesOfURL) && len(in.opts.ProxyEnv) > 0:
		in.warnings = append(in.warnings, fmt.Sprintf("Istio %s reads only cluster and network from the injection URL: proxyEnv is ignored", p.release))
	}
}

// Variables of the proxy that describe its location.
const (
	ClusterVariable = "ISTIO_META_CLUSTER_ID"
	NetworkVariable = "ISTIO_META_NETWORK"
)

// URLVariables returns the variables that the injection URL sets on every proxy, as far as the version reads them:
// up to 1.7 cluster and network only, and only if it names both. The caller owns the map.
func (in *Injector) URLVariables() map[string]string {
	out := map[string]string{}
	p := in.profile
	if !p.Has(feature.ClusterFromURL) || p.Has(feature.ClusterOnlyBoth) && (in.opts.Cluster == "" || in.opts.Network == "") {
		return out
	}
	if p.Has(feature.VariablesOfURL) {
		maps.Copy(out, in.opts.ProxyEnv)
	}
	for name, value := range map[string]string{ClusterVariable: in.opts.Cluster, NetworkVariable: in.opts.Network} {
		if value != "" {
			out[name] = value
		}
	}
	return out
}

// ClusterVariables returns the variables for the cluster and the network of a proxy whose pod has the labels: those
// of the values, overridden by the injection URL, overridden by the label for the network. It includes the
// variables of the URL that the version reads. An empty label removes the values' network, but not that of the URL
// (source: extractClusterAndNetwork in pkg/kube/inject/inject.go, and RunTemplate before that function existed,
// since 1.8).
func (in *Injector) ClusterVariables(podLabels map[string]string) map[string]string {
	out := in.URLVariables()
	if !in.profile.Has(feature.ClusterFromValues) {
		return out
	}
	if out[ClusterVariable] == "" {
		setUnlessEmpty(out, ClusterVariable, in.values.String("global", "multiCluster", "clusterName"))
	}
	network, labelled := podLabels[networkLabel]
	if !labelled && out[NetworkVariable] == "" {
		network = in.values.String("global", "network")
	}
	setUnlessEmpty(out, NetworkVariable, network)
	return out
}

const networkLabel = "topology.istio.io/network"

func setUnlessEmpty(m map[string]string, key, value string) {
	if value != "" {
		m[key] = value
	}
}
