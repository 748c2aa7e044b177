// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"time"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/release"
)

// Names and addresses of the built-in defaults.
const (
	rootNamespace  = "istio-system"
	plainDiscovery = "istio-pilot:15010"
	discovery      = "istiod.istio-system.svc:15012"
	zipkin         = "zipkin.istio-system:9411"
)

// DefaultProxyConfig returns the proxy configuration that istiod (before 1.5: the sidecar injector) of a release has
// built in. Source: pkg/config/mesh/mesh.go (up to 1.2: pilot/pkg/model/context.go) of each version.
func DefaultProxyConfig(r release.Release) *ProxyConfig {
	serviceCluster := "istio-proxy"
	pc := &ProxyConfig{
		view:           view{r},
		ConfigPath:     "/etc/istio/proxy",
		BinaryPath:     "/usr/local/bin/envoy",
		Cluster:        &serviceCluster,
		DrainDuration:  NewDuration(45 * time.Second),
		ProxyAdminPort: 15000,
		StatNameLength: 189,
	}
	if feature.In(r, feature.ParentShutdown) {
		pc.ParentShutdownDuration = NewDuration(60 * time.Second)
	}
	if feature.In(r, feature.DefaultsOfFirst) {
		pc.DrainDuration = NewDuration(2 * time.Second)
		pc.ParentShutdownDuration = NewDuration(3 * time.Second)
	}
	if feature.In(r, feature.DefaultTelemetry) {
		pc.EnvoyMetricsService = &RemoteService{}
		pc.EnvoyAccessLogService = &RemoteService{}
	}
	if feature.In(r, feature.DefaultsOfPilot) {
		pc.DiscoveryAddress = plainDiscovery
		pc.ConnectTimeout = NewDuration(time.Second)
		return pc
	}
	pc.ConfigPath = "./etc/istio/proxy"
	pc.DiscoveryAddress = discovery
	pc.StatusPort = 15020
	if feature.In(r, feature.DefaultConcurrency) {
		pc.Workers = &Int32Value{Value: 2}
	}
	if feature.In(r, feature.DefaultZipkin) {
		pc.Tracing = &Tracing{Zipkin: &Zipkin{Address: zipkin}}
	}
	if feature.In(r, feature.DefaultTermination) {
		pc.TerminationDrainDuration = NewDuration(5 * time.Second)
		pc.ControlPlaneAuthPolicy = AuthenticationPolicyMutualTls
	}
	return pc
}

// Default returns the mesh configuration that a release has built in. Fields that no injection reads are set where they
// are known not to be zero, so that a template of the user's own sees them.
func Default(r release.Release) *MeshConfig {
	mc := &MeshConfig{
		view:                           view{r},
		ProxyListenPort:                15001,
		EnableTracing:                  true,
		IngressClass:                   "istio",
		IngressControllerMode:          IngressControllerModeStrict,
		ConnectTimeout:                 NewDuration(time.Second),
		DefaultConfig:                  DefaultProxyConfig(r),
		AccessLogFile:                  "/dev/stdout",
		DefaultServiceExportTo:         []string{"*"},
		DefaultVirtualServiceExportTo:  []string{"*"},
		DefaultDestinationRuleExportTo: []string{"*"},
		OutboundTrafficPolicy:          &OutboundTrafficPolicy{Mode: OutboundTrafficPolicyModeAllowAny},
		DnsRefreshRate:                 NewDuration(5 * time.Second),
		RootNamespace:                  rootNamespace,
		IngressService:                 "istio-ingressgateway",
		DisablePolicyChecks:            feature.In(r, feature.DefaultMixer),
	}
	if feature.In(r, feature.DefaultsOfFirst) {
		mc.DefaultServiceExportTo, mc.DefaultVirtualServiceExportTo, mc.DefaultDestinationRuleExportTo = nil, nil, nil
		mc.OutboundTrafficPolicy, mc.DnsRefreshRate = nil, nil
		mc.RootNamespace, mc.IngressService = "", ""
	}
	if feature.In(r, feature.DefaultsOfPilot) {
		return mc
	}
	mc.AccessLogFile = ""
	mc.ConnectTimeout = NewDuration(10 * time.Second)
	mc.TrustDomain = "cluster.local"
	mc.EnableAutoMtls = &BoolValue{Value: true}
	mc.LocalityLbSetting = &LocalityLoadBalancerSetting{Enabled: &BoolValue{Value: true}}
	mc.ProtocolDetectionTimeout = NewDuration(0)
	if feature.In(r, feature.DefaultMixer) {
		mc.SdsUdsPath = "unix:./etc/istio/proxy/SDS"
		mc.ProtocolDetectionTimeout = NewDuration(5 * time.Second)
		mc.DisableMixerHttpReports = true
		mc.ReportBatchMaxEntries = 100
		mc.ReportBatchMaxTime = NewDuration(time.Second)
	}
	if feature.In(r, feature.DefaultSlowDNS) {
		mc.DnsRefreshRate = NewDuration(60 * time.Second)
	}
	if feature.In(r, feature.DefaultInboundPort) {
		mc.ProxyInboundListenPort = 15006
	}
	if feature.In(r, feature.DefaultInboundPolicy) {
		mc.InboundTrafficPolicy = &InboundTrafficPolicy{}
	}
	if feature.In(r, feature.ProvidersMerged) {
		mc.DefaultProviders = &DefaultProviders{}
		mc.ExtensionProviders = []*ExtensionProvider{
			{Name: "prometheus", Prometheus: &PrometheusMetricsProvider{}},
			{Name: "stackdriver", Stackdriver: &StackdriverProvider{}},
			{Name: "envoy", EnvoyFileAccessLog: &EnvoyFileAccessLogProvider{Path: "/dev/stdout"}},
		}
	}
	return mc
}

// PrometheusMerge reports whether the mesh merges the application's metrics into the proxy's for pods without a
// setting: enablePrometheusMerge, true if unset. It is read from Istio 1.6.
func (m *MeshConfig) PrometheusMerge() bool {
	if m == nil || m.EnablePrometheusMerge == nil {
		return true
	}
	return m.EnablePrometheusMerge.Value
}
