// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/strict"
)

// valueFormat describes the values that some keys may have. A text that is empty, or that another tool completes, is right everywhere.
type valueFormat struct {
	keys  string // with dots, separated by spaces
	right func(any) bool
	want  string
	words []string // the single words that it may be, for suggestions
}

var (
	pullPolicies      = []string{"Always", "IfNotPresent", "Never"}
	certProviders     = []string{"istiod", "kubernetes", "custom", "none"}
	tokenPolicies     = []string{"third-party-jwt", "first-party-jwt"}
	tracers           = []string{"zipkin", "lightstep", "datadog", "stackdriver", "openCensusAgent", "none"}
	resourceScopes    = []string{"all", "cluster", "namespace"}
	cniProviders      = []string{"default", "multus"}
	reinvocations     = []string{"Never", "IfNeeded"}
	knownVariants     = []string{"debug", "distroless"}
	listOfPorts       = feature.ListOf(feature.IsPort)
	allOrListOfPorts  = feature.OrAll(listOfPorts)
	listOfRanges      = feature.ListOf(feature.IsCIDR)
	allOrListOfRanges = feature.OrAll(listOfRanges)
)

const wantHub = "a registry and a path in small letters, without a slash at the end, such as docker.io/istio"

// valueFormats are the values of a known format. The templates print them as they are, and what reads them in the cluster rejects
// others or ignores them: Envoy, Istio's agent and iptables, the container runtime, and the API server. Source: values.yaml of
// the chart istio-discovery and operator/pkg/apis/values_types.proto of Istio 1.31, and for older keys those of 1.0 to 1.30.
var valueFormats = []valueFormat{
	{"global.proxy.logLevel", text(feature.IsProxyLevel), "one of " + strings.Join(feature.ProxyLevels, ", "), feature.ProxyLevels},
	{"global.proxy.componentLogLevel", text(feature.AreProxyLevels),
		"COMPONENT:LEVEL, such as misc:error, with a level of " + strings.Join(feature.ProxyLevels, ", "), nil},
	{"global.logging.level", text(feature.AreAgentLevels),
		"SCOPE:LEVEL, such as default:info, with a level of " + strings.Join(feature.AgentLevels, ", "), nil},
	oneWord("global.imagePullPolicy", pullPolicies),
	oneWord("global.jwtPolicy", tokenPolicies),
	oneWord("global.proxy.tracer", tracers),
	oneWord("global.resourceScope", resourceScopes),
	oneWord("pilot.cni.provider", cniProviders),
	oneWord(hookValues+".reinvocationPolicy", reinvocations),
	{"global.pilotCertProvider", text(isCertProvider), "one of " + strings.Join(certProviders, ", ") + ", or k8s.io/SIGNER", certProviders},
	{"global.hub", text(feature.IsHub), wantHub, nil},
	{"global.tag", isTagValue, "a tag of letters, digits, dots and dashes, in quotes, such as \"1.31.0\"", nil},
	{"global.variant", text(isVariant), "the end of a tag, such as distroless", knownVariants},
	{"global.proxy.image global.proxy_init.image", text(feature.IsImage), "the name of an image, such as proxyv2 or docker.io/istio/proxyv2:1.31.0", nil},
	{"global.proxy.includeIPRanges", text(allOrListOfRanges), feature.WantCIDRs + ", such as 10.0.0.0/8, or *", nil},
	{"global.proxy.excludeIPRanges", text(listOfRanges), feature.WantCIDRs + ", such as 10.0.0.0/8", nil},
	{"global.proxy.includeInboundPorts global.proxy.includeOutboundPorts", text(allOrListOfPorts), feature.WantPorts + ", such as \"80,443\", or *", nil},
	{"global.proxy.excludeInboundPorts global.proxy.excludeOutboundPorts", text(listOfPorts), feature.WantPorts + ", such as \"80,443\"", nil},
	{"global.proxy.statusPort global.sts.servicePort", text(feature.IsPort), "a port between 0 and 65535", nil},
	{"global.proxy.clusterDomain", text(feature.IsDomain), "a domain, such as cluster.local", nil},
	{"global.trustDomain", text(feature.IsTrustDomain), "a trust domain, such as cluster.local", nil},
	{"global.proxy.outlierLogPath", text(func(s string) bool { return strings.HasPrefix(s, "/") }), "an absolute path, such as /dev/stdout", nil},
	{"global.proxy.readinessInitialDelaySeconds", numberFrom(0), "a whole number from 0", nil},
	{"global.proxy.readinessPeriodSeconds global.proxy.readinessFailureThreshold global.proxy.startupProbe.failureThreshold",
		numberFrom(1), "a whole number from 1", nil},
	{"global.proxy.concurrency", numberFrom(0), "a whole number from 0", nil},
	{"global.istioNamespace revision global.revision", text(isDNSLabel), "a name of small letters, digits and dashes", nil},
	{"global.network", text(feature.IsLabelValue), "the value of a label: letters, digits, dots, dashes and underscores", nil},
	{"global.meshID global.multiCluster.clusterName global.sds.token.aud global.caName", text(noSpace), "a name without spaces", nil},
	{"global.caAddress", text(isAddress), "HOST:PORT without a scheme, such as istiod.istio-system.svc:15012", nil},
	{"global.remotePilotAddress", text(feature.IsDomainOrIP), "a host or an IP address, without a scheme and a port", nil},
	{hookValues + ".injectionURL", text(func(s string) bool { return strings.HasPrefix(s, "https://") && noSpace(s) }), "a URL with https://", nil},
	{"global.proxy.capNetBindService " + hookValues + ".objectSelector.enabled " + hookValues + ".objectSelector.autoInject", isSwitchText, "true or false", nil},
	{"global.proxy.privileged global.proxy.holdApplicationUntilProxyStarts global.proxy.enableCoreDump global.proxy.startupProbe.enabled global.logAsJson " +
		"global.mountMtlsCerts global.nativeNftables global.proxy_init.forceApplyIptables global.multiCluster.enabled global.externalIstiod " +
		"global.configCluster global.omitSidecarInjectorConfigMap global.operatorManageWebhooks global.configValidation pilot.cni.enabled " +
		"istio_cni.enabled istio_cni.chained global.istiocni.enabled " + hookValues + ".enableNamespacesByDefault " +
		hookValues + ".rewriteAppHTTPProbe " + hookValues + ".useLegacySelectors", isSwitch, "true or false without quotes", nil},
}

// oneWord is the format of a value with a closed set.
func oneWord(key string, words []string) valueFormat {
	return valueFormat{key, text(func(s string) bool { return slices.Contains(words, s) }), "one of " + strings.Join(words, ", "), words}
}

// text checks the text of a value: templates print a number as they print its text.
func text(right func(string) bool) func(any) bool {
	return func(v any) bool {
		switch v := v.(type) {
		case string:
			return right(v)
		case float64:
			return right(strconv.FormatFloat(v, 'f', -1, 64))
		case int, int64:
			return right(fmt.Sprint(v))
		}
		return false
	}
}

// isEmptyOrReplaced reports whether a value is not set, or completed by another tool.
func isEmptyOrReplaced(v any) bool {
	s, isText := v.(string)
	return isText && (s == "" || feature.HasPlaceholder(s))
}

func numberFrom(least float64) func(any) bool {
	return func(v any) bool {
		n, err := strconv.ParseFloat(fmt.Sprint(v), 64)
		return err == nil && n >= least && n == math.Trunc(n) && n <= math.MaxInt32
	}
}

// isSwitch rejects a text: templates take "false" for true, and istiod rejects values with either.
func isSwitch(v any) bool {
	_, isBool := v.(bool)
	return isBool
}

// isSwitchText accepts both texts: istiod has no type for the value, and templates print it.
func isSwitchText(v any) bool { return isSwitch(v) || v == "true" || v == "false" }

// isTagValue rejects a number with a fraction: 1.10 is 1.1 already.
func isTagValue(v any) bool {
	if f, isNumber := v.(float64); isNumber && f != math.Trunc(f) {
		return false
	}
	return text(feature.IsTag)(v)
}

// isVariant rejects what is almost a variant of Istio's. Distributions of others have their own.
func isVariant(s string) bool {
	if slices.Contains(knownVariants, s) {
		return true
	}
	return feature.IsTag(s) && strict.Closest(s, knownVariants) == ""
}

func isCertProvider(s string) bool {
	return slices.Contains(certProviders, s) || strings.HasPrefix(s, "k8s.io/") && noSpace(s)
}

func isDNSLabel(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }

func isDNSName(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }

func noSpace(s string) bool { return !strings.ContainsAny(s, " \t\r\n\"") }

// isAddress accepts a host without a port, as gRPC does.
func isAddress(s string) bool {
	return noSpace(s) && !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://")
}
