// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// valueCheck describes which values of an annotation are valid, and which releases reject the pod for an invalid
// one. Source: the validation of annotations in pkg/kube/inject of Istio 1.0 to 1.31.
type valueCheck struct {
	right func(string) bool
	want  string
	by    feature.Name // What refuses it; empty: every release does.
}

const (
	wantNumber     = "a whole number that is not negative"
	wantQuantity   = "a quantity such as 100m or 128Mi"
	wantBool       = "true or false"
	wantInterfaces = "names of network interfaces separated by commas"
)

var valueChecks = map[string]valueCheck{
	"sidecar.istio.io/interceptionMode":                     {oneOf("REDIRECT", "TPROXY", "NONE"), "REDIRECT, TPROXY or NONE", ""},
	"status.sidecar.istio.io/port":                          {feature.IsPort, feature.WantPort, ""},
	"readiness.status.sidecar.istio.io/initialDelaySeconds": {isNumber, wantNumber, ""},
	"readiness.status.sidecar.istio.io/periodSeconds":       {isNumber, wantNumber, ""},
	"readiness.status.sidecar.istio.io/failureThreshold":    {isNumber, wantNumber, ""},
	"readiness.status.sidecar.istio.io/applicationPorts":    {feature.ListOf(feature.IsPort), feature.WantPorts, ""},
	"traffic.sidecar.istio.io/includeOutboundIPRanges":      {feature.OrAll(feature.ListOf(feature.IsCIDR)), feature.WantCIDRs + ", or *", ""},
	"traffic.sidecar.istio.io/excludeOutboundIPRanges":      {feature.ListOf(feature.IsCIDR), feature.WantCIDRs, ""},
	"traffic.sidecar.istio.io/includeInboundPorts":          {feature.OrAll(feature.ListOf(feature.IsPort)), feature.WantPorts + ", or *", ""},
	"traffic.sidecar.istio.io/excludeInboundPorts":          {feature.ListOf(feature.IsPort), feature.WantPorts, ""},
	"traffic.sidecar.istio.io/includeOutboundPorts":         {feature.OrAll(feature.ListOf(feature.IsPort)), feature.WantPorts + ", or *", ""},
	"traffic.sidecar.istio.io/excludeOutboundPorts":         {feature.ListOf(feature.IsPort), feature.WantPorts, ""},
	"prometheus.istio.io/merge-metrics":                     {isBool, wantBool, feature.ValidateMergeMetrics},
	"proxy.istio.io/config":                                 {isObject, "a ProxyConfig in YAML", feature.ValidateProxyConfig},
	"sidecar.istio.io/proxyCPU":                             {isQuantity, wantQuantity, feature.ValidateResources},
	"sidecar.istio.io/proxyCPULimit":                        {isQuantity, wantQuantity, feature.ValidateResources},
	"sidecar.istio.io/proxyMemory":                          {isQuantity, wantQuantity, feature.ValidateResources},
	"sidecar.istio.io/proxyMemoryLimit":                     {isQuantity, wantQuantity, feature.ValidateResources},
	"traffic.sidecar.istio.io/excludeInterfaces":            {feature.ListOf(isInterface), wantInterfaces, feature.ValidateInterfaces},
	"traffic.sidecar.istio.io/kubevirtInterfaces":           {feature.ListOf(isInterface), wantInterfaces, feature.ValidateInterfaces},
	"istio.io/reroute-virtual-interfaces":                   {feature.ListOf(isInterface), wantInterfaces, feature.ValidateInterfaces},
}

func checkValues(p *pod) []finding {
	plane, known := parseVersion(p.in.Facts.IstioVersion)
	var out []finding
	for _, key := range ownIstioAnnotations(p) {
		check, ok := valueChecks[key]
		value := p.annotations[key]
		if !ok || check.right(value) {
			continue
		}
		effect := "Istio refuses the pod"
		switch {
		case check.by == "":
		case !known:
			effect = fmt.Sprintf("Istio %s refuse the pod", feature.Spans(check.by))
		case !feature.In(plane.newestKnownRelease(), check.by):
			effect = fmt.Sprintf("Istio %s accepts it, but %s refuse the pod", plane, feature.Spans(check.by))
		default:
			effect = fmt.Sprintf("Istio %s refuses the pod", plane)
		}
		out = append(out, finding{
			path: annotationPath(key), current: value,
			message: fmt.Sprintf("annotation %s is %s, and not %s: %s", key, foreign.Quote(value), check.want, effect),
		})
	}
	return slices.Concat(out, wrongSettings(p, settings), injectValues(p, plane, known))
}

// setting describes which values of an annotation have a meaning. The injector accepts others.
type setting struct {
	right  func(string) bool
	want   string
	effect string   // of a wrong value
	words  []string // for suggestions
}

var (
	wantProxyLevels = "a level of " + strings.Join(feature.ProxyLevels, ", ")
	wantAgentLevels = "a level of " + strings.Join(feature.AgentLevels, ", ")
)

// levelSettings are the annotations with log levels. The proxy, or its agent, stops at an unknown one.
var levelSettings = map[string]setting{
	"sidecar.istio.io/logLevel":          {feature.IsProxyLevel, wantProxyLevels, notStarted, feature.ProxyLevels},
	"sidecar.istio.io/componentLogLevel": {feature.AreProxyLevels, "COMPONENT:LEVEL, such as misc:error, with " + wantProxyLevels, notStarted, nil},
	"sidecar.istio.io/agentLogLevel":     {feature.AreAgentLevels, "SCOPE:LEVEL, such as default:info, with " + wantAgentLevels, notStarted, nil},
}

const (
	notStarted = "the proxy does not start"
	noEffect   = "it has no effect"
)

// settings are the other annotations with a known format that no injector checks. Source: what reads them in
// pkg/kube/inject, pkg/bootstrap and pilot/cmd/pilot-agent/config, and in the CNI plugin of Istio 1.32, what Envoy accepts of the
// bootstrap, and annotation/annotations.yaml of istio.io/api 1.32.
var settings = map[string]setting{
	"sidecar.istio.io/rewriteAppHTTPProbers":  {isBool, wantBool, noEffect, nil},
	"sidecar.istio.io/nativeSidecar":          {isBool, wantBool, noEffect, nil},
	"sidecar.istio.io/capNetBindService":      {isBool, wantBool, noEffect, nil},
	"sidecar.istio.io/statsCompression":       {oneOf(compressions...), "brotli, gzip or zstd", noEffect, compressions},
	"sidecar.istio.io/controlPlaneAuthPolicy": {oneOf("NONE", "MUTUAL_TLS"), "NONE or MUTUAL_TLS", noEffect, []string{"NONE", "MUTUAL_TLS"}},
	"security.istio.io/autoMTLS":              {isBool, wantBool, noEffect, nil},
	"ambient.istio.io/bypass-inbound-capture": {isBool, wantBool, noEffect, nil},
	"ambient.istio.io/dns-capture":            {isBool, wantBool, noEffect, nil},
	"sidecar.istio.io/proxyImageType":         {feature.IsImageType, feature.WantImageType, "Istio publishes no such image", feature.ImageTypes},
	"sidecar.istio.io/bootstrapOverride": {feature.IsObjectName, "the name of a ConfigMap: small letters, digits, dashes and dots",
		"no ConfigMap can have the name, and the pod waits for it", nil},
	"sidecar.istio.io/discoveryAddress": {feature.IsAddressWithPort, "HOST:PORT, such as istiod.istio-system.svc:15012",
		"the agent does not reach istiod", nil},
	"sidecar.istio.io/extraStatTags":         {feature.ListOf(feature.IsStatTag), "names of tags separated by commas", "Envoy finds no such tag", nil},
	"sidecar.istio.io/statsInclusionRegexps": {feature.ListOf(feature.IsRegexp), feature.WantRegexp + ", or several separated by commas", notStarted, nil},
	"sidecar.istio.io/statsHistogramBuckets": {feature.IsHistogramBuckets,
		`JSON with different bounds above 0 by prefix, such as {"istiocustom":[1,5,10]}`, "the agent ignores what is not JSON, and Envoy does not start with other bounds", nil},
	"sidecar.istio.io/statsHistogramBins":    {isBins, "a whole number from 1 to 46082", noEffect, nil},
	"sidecar.istio.io/statsFlushInterval":    {feature.IsGoDuration, wantDuration, noEffect, nil},
	"sidecar.istio.io/statsEvictionInterval": {feature.IsGoDuration, wantDuration, noEffect, nil},
	"prometheus.istio.io/secure-port":        {feature.IsPort, feature.WantPort, noEffect, nil},
}

var compressions = []string{"brotli", "gzip", "zstd"}

const wantDuration = "a duration such as 10s"

// isBins has the bounds of Envoy's HistogramBucketSettings.
func isBins(s string) bool {
	n, err := strconv.ParseUint(s, 10, 32)
	return err == nil && n >= 1 && n <= 46082
}

// checkLogLevels finds log levels at which the proxy does not start.
func checkLogLevels(p *pod) []finding { return wrongSettings(p, levelSettings) }

// wrongSettings finds the values of settings that mean nothing. An empty value is the default, and one with a placeholder is not known.
func wrongSettings(p *pod, settings map[string]setting) []finding {
	var out []finding
	for _, key := range ownIstioAnnotations(p) {
		s, ok := settings[key]
		value := p.annotations[key]
		if !ok || value == "" || s.right(value) || feature.HasPlaceholder(value) {
			continue
		}
		out = append(out, finding{
			path: annotationPath(key), current: value,
			message: fmt.Sprintf("annotation %s is %s, and not %s: %s%s", key, foreign.Quote(value), s.want, s.effect, strict.DidYouMean(value, s.words)),
		})
	}
	return out
}

// injectValues looks at the words that older versions took for a yes or a no.
func injectValues(p *pod, plane versionNumber, known bool) []finding {
	const key = "sidecar.istio.io/inject"
	var out []finding
	for _, place := range []struct {
		what, path string
		values     map[string]string
	}{{"label", labelPath(key), p.labels}, {"annotation", annotationPath(key), p.annotations}} {
		value, ok := place.values[key]
		if !ok || value == "true" || value == "false" || value == "" {
			continue
		}
		meant := "false"
		if slices.Contains([]string{"y", "yes", "true", "on"}, strings.ToLower(value)) {
			meant = "true"
		}
		strict := feature.Since(feature.InjectStrictValues)
		effect := fmt.Sprintf("up to Istio 1.%d it means %s, from 1.%d on it means nothing and the default policy decides", strict.Minor-1, meant, strict.Minor)
		if known && feature.In(plane.newestKnownRelease(), feature.InjectStrictValues) {
			effect = fmt.Sprintf("on Istio %s it means nothing, and the default policy decides (up to 1.%d it meant %s)", plane, strict.Minor-1, meant)
		}
		out = append(out, finding{
			path: place.path, current: value, proposed: meant,
			message: fmt.Sprintf("%s %s is %s, and not \"true\" or \"false\": %s", place.what, key, foreign.Quote(value), effect),
		})
	}
	return out
}

func oneOf(words ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(words, s) }
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

func isBool(s string) bool {
	_, err := strconv.ParseBool(s)
	return err == nil
}

func isQuantity(s string) bool {
	_, ok := quantityOf(s)
	return ok
}

// interfaceName leaves out what no interface of Linux has, so that no right name is ever reported.
var interfaceName = lazyregexp.New(`^[^\s/;&|$"'` + "`" + `]{1,15}$`)

func isInterface(s string) bool { return interfaceName.MatchString(strings.TrimSpace(s)) }

func isObject(s string) bool {
	var v map[string]any
	return yaml.Unmarshal([]byte(s), &v) == nil
}
