// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"maps"

	"github.com/prerig/prerig/fn/istio/feature"
)

// ignoredURLSettings warns of settings of the injection URL that the version does not read.
func ignoredURLSettings(o Options, p *Profile) []string {
	if len(o.ProxyEnv) == 0 && o.Cluster == "" && o.Network == "" {
		return nil
	}
	switch {
	case !p.Has(feature.ClusterFromURL):
		return []string{fmt.Sprintf("Istio %s reads nothing from the injection URL: cluster, network and proxyEnv are ignored", p.release)}
	case p.Has(feature.ClusterOnlyBoth) && (o.Cluster == "" || o.Network == ""):
		return []string{fmt.Sprintf("Istio %s reads cluster and network from the injection URL only where it has both: what is given of them is ignored", p.release)}
	case !p.Has(feature.VariablesOfURL) && len(o.ProxyEnv) > 0:
		return []string{fmt.Sprintf("Istio %s reads only cluster and network from the injection URL: proxyEnv is ignored", p.release)}
	}
	return nil
}

// Variables of the proxy that describe its location.
const (
	ClusterVariable = "ISTIO_META_CLUSTER_ID"
	NetworkVariable = "ISTIO_META_NETWORK"
)

// urlVariables returns the variables that the injection URL sets on every proxy, as far as the version reads them:
// up to 1.7 cluster and network only, and only if it names both. The caller owns the map.
func urlVariables(o Options, p *Profile) map[string]string {
	out := map[string]string{}
	if !p.Has(feature.ClusterFromURL) || p.Has(feature.ClusterOnlyBoth) && (o.Cluster == "" || o.Network == "") {
		return out
	}
	if p.Has(feature.VariablesOfURL) {
		maps.Copy(out, o.ProxyEnv)
	}
	for name, value := range map[string]string{ClusterVariable: o.Cluster, NetworkVariable: o.Network} {
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
	out := urlVariables(in.opts, in.profile)
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
