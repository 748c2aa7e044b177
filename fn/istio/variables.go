// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	_ "embed" // the names of variables
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/strict"
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

// readVariables are the variables of istiod that the injector of some version reads, beside those that templates name.
var readVariables = []string{
	envNativeSidecars, envCompliancePolicy, envRewriteTCP, envLegacyFSGroup, envJWTPolicy, "PLATFORM", "PILOT_ENABLE_INBOUND_PASSTHROUGH",
}

// istiodVariables has the name of every variable that istiod registers, one a line. Most do not change the injection.
//
//go:embed istiod_variables.txt
var istiodVariables string

// variableFormats are the formats of those that are no free texts.
var variableFormats = map[string]struct {
	words []string
	bool  bool
}{
	envCompliancePolicy: {words: []string{"fips-140-2", "fips-140-3", "pqc"}},
	envRewriteTCP:       {bool: true}, envLegacyFSGroup: {bool: true}, "PILOT_ENABLE_INBOUND_PASSTHROUGH": {bool: true},
	envJWTPolicy: {words: tokenPolicies},
}

// wrongVariables warns of variables of istiod that nothing reads although their names are almost those of others, and of values that istiod
// replaces by a default. A variable of istiod that does not change the injection is not wrong.
func wrongVariables(o Options) []error {
	var out []error
	warn := func(name, format string, args ...any) {
		out = append(out, strict.AtField(fmt.Errorf("istiodEnv.%s: %s", name, fmt.Sprintf(format, args...)), "istiodEnv", name))
	}
	for _, name := range slices.Sorted(maps.Keys(o.IstiodEnv)) {
		value := o.IstiodEnv[name]
		format, known := variableFormats[name]
		wrong := known && value != "" && !feature.HasPlaceholder(value) && !slices.Contains(format.words, value)
		_, notBool := strconv.ParseBool(value)
		switch {
		case len(validation.IsEnvVarName(name)) > 0:
			warn(name, "is not the name of a variable")
		case !slices.Contains(readVariables, name) && !strings.Contains(o.Config, strconv.Quote(name)):
			if !strings.Contains(istiodVariables, "\n"+name+"\n") && !strings.HasPrefix(name, "GO") {
				warn(name, "neither istiod nor its templates read it, so that it has no effect%s; remove it",
					strict.DidYouMean(strings.ToUpper(name), append(strings.Fields(istiodVariables), readVariables...)))
			}
		case wrong && format.bool && notBool != nil:
			words := append([]string{"true", "false"}, format.words...)
			warn(name, "must be %s, is %q: istiod takes its default%s", strings.Join(words, ", "), value, strict.DidYouMean(value, words))
		case wrong && !format.bool:
			warn(name, "must be %s, is %q%s", strings.Join(format.words, " or "), value, strict.DidYouMean(value, format.words))
		}
	}
	return out
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
