// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/strict"
)

// valueFormat describes the values of a field, or the elements of a list, that have a known format beside their type. What
// ValidateProxyConfig rejects is not repeated here.
type valueFormat struct {
	fields string // MESSAGE.field, separated by spaces
	right  func(any) bool
	want   string
	effect string   // of a wrong value
	words  []string // for suggestions
}

const (
	meshRejected = "istiod rejects the mesh config and keeps the one that it had"
	noEffect     = "it has no effect"
)

// valueFormats lists the formats. Source: pkg/config/validation/agent, pkg/bootstrap, pkg/istio-agent/health, pilot/pkg/networking/core/tracing.go
// and the fields' descriptions in istio.io/api of Istio 1.32.
var valueFormats = []valueFormat{
	{"ProxyImage.imageType", text(feature.IsImageType), feature.WantImageType, "Istio publishes no such image", feature.ImageTypes},
	{"ProxyStatsMatcher.inclusionRegexps", text(feature.IsRegexp), feature.WantRegexp, "Envoy does not start", nil},
	{"ProxyConfig.extraStatTags", text(feature.IsStatTag), "a name such as request_host", "Envoy finds no such tag", nil},
	{"ProxyConfig.concurrency resourceSpec.concurrency", between(0, 1<<31-1), "0 for a thread per core, or a number of threads",
		"the proxy starts a thread per core", nil},
	{"Tracing.sampling", between(0, 100), "a percentage from 0 to 100", "Istio samples 1 % above 100, and Envoy rejects its listeners below 0", nil},
	{"ProxyConfig.caCertificatesPem CertificateData.pem", text(isPEM), "a certificate in PEM, with -----BEGIN CERTIFICATE-----", noEffect, nil},
	{"ReadinessProbe.httpGet ReadinessProbe.tcpSocket ReadinessProbe.grpc", hasPort, "complete: it needs the port of the application, such as port: 8080",
		"the agent never reports the workload as healthy", nil},
	{"HTTPHealthCheckConfig.port TCPHealthCheckConfig.port GrpcHealthCheckConfig.port", between(1, 65535), "a port from 1 to 65535",
		"the agent never reports the workload as healthy", nil},
	{"HTTPHealthCheckConfig.scheme", word("", "HTTP", "HTTPS", "http", "https"), "HTTP or HTTPS", "the agent never reports the workload as healthy",
		[]string{"HTTP", "HTTPS"}},
	{"ReadinessProbe.initialDelaySeconds ReadinessProbe.timeoutSeconds ReadinessProbe.periodSeconds ReadinessProbe.successThreshold " +
		"ReadinessProbe.failureThreshold", between(0, 1<<31-1), "a whole number from 0", noEffect, nil},
	{"MeshConfig.trustDomain MeshConfig.trustDomainAliases", text(feature.IsTrustDomain), "a domain, such as cluster.local", meshRejected, nil},
	{"MeshConfig.rootNamespace", text(feature.IsNamespace), "the name of a namespace: small letters, digits and dashes",
		"no namespace can have the name, so that no resource applies to the whole mesh", nil},
	{"MeshConfig.proxyListenPort", between(1, 65535), "a port from 1 to 65535", meshRejected, nil},
	{"MeshConfig.proxyInboundListenPort MeshConfig.proxyHttpPort", between(0, 65535), "a port", "Envoy rejects the listener", nil},
	{"MeshConfig.connectTimeout", isConnectTimeout, "a duration from 1ms to 1h, such as 10s", meshRejected, nil},
	{"MeshConfig.ingressSelector", text(feature.IsLabelValue), "the value of a label: letters, digits, dots, dashes and underscores", noEffect, nil},
	{"MeshConfig.defaultServiceExportTo MeshConfig.defaultVirtualServiceExportTo MeshConfig.defaultDestinationRuleExportTo", text(isExport),
		"*, . or ~, or the name of a namespace", noEffect, nil},
	{"ServiceSettings.hosts", text(isWildcardHost), "a host, or *. and a domain", meshRejected, nil},
	{"LabelSelectorRequirement.operator", word("In", "NotIn", "Exists", "DoesNotExist"), "In, NotIn, Exists or DoesNotExist",
		"istiod ignores the selectors", []string{"In", "NotIn", "Exists", "DoesNotExist"}},
	{"LabelSelectorRequirement.key", text(isLabelKey), "the name of a label", "istiod ignores the selectors", nil},
	{everyProvider("service"), text(isProviderService), "a host, or NAMESPACE/HOST", "istiod ignores the provider", nil},
	{everyProvider("port"), between(1, 65535), "a port from 1 to 65535", "istiod ignores the provider", nil},
	{"EnvoyExternalAuthorizationHttpProvider.pathPrefix", text(func(s string) bool { return strings.HasPrefix(s, "/") }), "a path that begins with /",
		"istiod ignores the provider", nil},
	{"EnvoyExternalAuthorizationHttpProvider.statusOnError EnvoyExternalAuthorizationGrpcProvider.statusOnError", text(feature.IsStatusCode),
		"a status of HTTP, such as \"403\"", "istiod ignores the provider", nil},
}

// everyProvider names a field of all extension providers that are services.
func everyProvider(field string) string {
	messages := []string{
		"EnvoyExternalAuthorizationHttpProvider", "EnvoyExternalAuthorizationGrpcProvider", "ZipkinTracingProvider", "LightstepTracingProvider",
		"DatadogTracingProvider", "OpenCensusAgentTracingProvider", "SkyWalkingTracingProvider", "OpenTelemetryTracingProvider",
		"EnvoyHttpGrpcV3LogProvider", "EnvoyTcpGrpcV3LogProvider", "EnvoyOpenTelemetryLogProvider",
	}
	return strings.Join(messages, "."+field+" ") + "." + field
}

// formatOf are the formats by field.
var formatOf = func() map[string]*valueFormat {
	out := map[string]*valueFormat{}
	for i := range valueFormats {
		for field := range strings.FieldsSeq(valueFormats[i].fields) {
			out[field] = &valueFormats[i]
		}
	}
	return out
}()

// checkFormat warns of a value that no cluster uses as it is written. One that another tool completes is right.
func (d *decoder) checkFormat(message, field string, v any, path string) {
	format := formatOf[message+"."+field]
	if format == nil {
		return
	}
	if list, isList := v.([]any); isList {
		for i, e := range list {
			d.warnOfFormat(format, e, path+"["+strconv.Itoa(i)+"]")
		}
		return
	}
	d.warnOfFormat(format, v, path)
}

// FieldOf returns the path of the field that a warning is about.
func FieldOf(warning string) []any {
	name, _, _ := strings.Cut(strings.TrimPrefix(warning, "field "), " ")
	var path []any
	for part := range strings.SplitSeq(strings.TrimSuffix(name, ":"), ".") {
		key, indexes, _ := strings.Cut(part, "[")
		path = append(path, key)
		for index := range strings.SplitSeq(indexes, "[") {
			if n, err := strconv.Atoi(strings.TrimSuffix(index, "]")); err == nil {
				path = append(path, n)
			}
		}
	}
	return path
}

func (d *decoder) warnOfFormat(format *valueFormat, v any, path string) {
	s, isText := v.(string)
	if v == nil || isText && (s == "" || feature.HasPlaceholder(s)) || format.right(v) {
		return
	}
	is := strict.Describe(v)
	if isText {
		is = foreign.Quote(s)
	}
	d.warnings = append(d.warnings, fmt.Sprintf("field %s must be %s, is %s: %s%s", path, format.want, is, format.effect, strict.DidYouMean(s, format.words)))
}

// text checks the text of a value.
func text(right func(string) bool) func(any) bool {
	return func(v any) bool {
		s, isText := v.(string)
		return !isText || right(s)
	}
}

func word(words ...string) func(any) bool {
	return text(func(s string) bool { return slices.Contains(words, s) })
}

// between checks a number, which may be in quotes.
func between(least, most float64) func(any) bool {
	return func(v any) bool {
		n, err := strconv.ParseFloat(fmt.Sprint(v), 64)
		return err == nil && n >= least && n <= most
	}
}

func isConnectTimeout(v any) bool {
	s, isText := v.(string)
	d, err := time.ParseDuration(s)
	return !isText || err != nil || d >= time.Millisecond && d <= time.Hour
}

func hasPort(v any) bool {
	probe, isMap := v.(map[string]any)
	return !isMap || probe["port"] != nil
}

func isPEM(s string) bool { return strings.Contains(s, "-----BEGIN ") }

func isExport(s string) bool {
	return slices.Contains([]string{"*", ".", "~"}, s) || feature.IsNamespace(s)
}

func isWildcardHost(s string) bool {
	return s == "*" || feature.IsDomain(strings.TrimPrefix(s, "*."))
}

func isLabelKey(s string) bool { return len(validation.IsQualifiedName(s)) == 0 }

// isProviderService accepts what istiod resolves: a host, an address, or a host of a namespace.
func isProviderService(s string) bool {
	namespace, host, qualified := strings.Cut(s, "/")
	if !qualified {
		return feature.IsDomainOrIP(s)
	}
	return isExport(namespace) && isWildcardHost(host)
}
