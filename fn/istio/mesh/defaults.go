// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"time"

	"github.com/prerig/prerig/fn/istio/release"
)

// Minor versions of Istio 1.x at which the rules change; each is the first or last version that a rule holds for.
const (
	lastScalarConcurrency = 6  // concurrency is a plain int32 up to here, later a wrapper
	lastReencodedDefaults = 5  // up to here explicit zero values in defaultConfig give the default back
	firstAnnotation       = 6  // proxy.istio.io/config is read from here
	firstMergedProviders  = 12 // extension providers and trust domain aliases join the built-in ones from here
	firstEffective        = 13 // ProxyConfig resources count from here, and configurations merge as protobuf messages
	lastEmptyKept         = 13 // up to here lists and maps that are set but empty are written in JSON
	firstCleaned          = 6  // protoToJSON leaves defaults out from here
	firstCleanedControl   = 7  // ... controlPlaneAuthPolicy and terminationDrainDuration too
	firstCleanedMetadata  = 9  // ... and an empty proxyMetadata
)

// Releases that do what not all releases of their minor do (source: pkg/config/mesh/mesh.go and
// pilot/pkg/model/proxy_config.go).
var (
	// mergedMetadata merge proxyMetadata of mesh config and annotation by key; others replace it.
	mergedMetadata = release.Since("1.10.3")
	// replacedFields replace fields of the built-in configuration by what comes over it.
	replacedFields = release.Since("1.16.4", "1.17.2")
	// mergedProxyHeaders keep of proxyHeaders what an annotation does not set.
	mergedProxyHeaders = release.Since("1.19.1")
)

// DependsOnPatch gives what patch releases of a minor do differently here, each as a few words.
func DependsOnPatch(minor int) []string {
	var out []string
	for _, rule := range []struct {
		what string
		release.Spans
	}{
		{"how proxyMetadata merges", mergedMetadata}, {"how proxy configs merge", replacedFields}, {"how proxyHeaders merge", mergedProxyHeaders},
	} {
		if rule.DependsOnPatch(minor) {
			out = append(out, rule.what)
		}
	}
	return out
}

// Names and addresses of the built-in defaults.
const (
	rootNamespace  = "istio-system"
	plainDiscovery = "istio-pilot:15010"
	discovery      = "istiod.istio-system.svc:15012"
	zipkin         = "zipkin.istio-system:9411"
)

// DefaultProxyConfig gives the proxy configuration that istiod (before 1.5: the sidecar injector) of a release has
// built in. Source: pkg/config/mesh/mesh.go (up to 1.2: pilot/pkg/model/context.go) of each version.
func DefaultProxyConfig(r release.Release) *ProxyConfig {
	minor := r.Minor
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
	if minor <= 16 {
		pc.ParentShutdownDuration = NewDuration(60 * time.Second)
	}
	if minor == 0 {
		pc.DrainDuration = NewDuration(2 * time.Second)
		pc.ParentShutdownDuration = NewDuration(3 * time.Second)
	}
	if minor >= 3 && minor <= 7 {
		pc.EnvoyMetricsService = &RemoteService{}
		pc.EnvoyAccessLogService = &RemoteService{}
	}
	if minor <= lastReencodedDefaults {
		pc.DiscoveryAddress = plainDiscovery
		pc.ConnectTimeout = NewDuration(time.Second)
		return pc
	}
	pc.ConfigPath = "./etc/istio/proxy"
	pc.DiscoveryAddress = discovery
	pc.StatusPort = 15020
	if minor <= 17 {
		pc.Workers = &Int32Value{Value: 2}
	}
	if minor <= 21 {
		pc.Tracing = &Tracing{Zipkin: &Zipkin{Address: zipkin}}
	}
	if minor >= 7 {
		pc.TerminationDrainDuration = NewDuration(5 * time.Second)
		pc.ControlPlaneAuthPolicy = AuthenticationPolicyMutualTls
	}
	return pc
}

// Default gives the mesh configuration that a release has built in. Fields that no injection reads are set where they
// are known not to be zero, so that a template of the user's own sees them.
func Default(r release.Release) *MeshConfig {
	minor := r.Minor
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
		DisablePolicyChecks:            minor <= 7,
	}
	if minor == 0 {
		mc.DefaultServiceExportTo, mc.DefaultVirtualServiceExportTo, mc.DefaultDestinationRuleExportTo = nil, nil, nil
		mc.OutboundTrafficPolicy, mc.DnsRefreshRate = nil, nil
		mc.RootNamespace, mc.IngressService, mc.DisablePolicyChecks = "", "", false
	}
	if minor <= lastReencodedDefaults {
		return mc
	}
	mc.AccessLogFile = ""
	mc.ConnectTimeout = NewDuration(10 * time.Second)
	mc.TrustDomain = "cluster.local"
	mc.EnableAutoMtls = &BoolValue{Value: true}
	mc.LocalityLbSetting = &LocalityLoadBalancerSetting{Enabled: &BoolValue{Value: true}}
	mc.ProtocolDetectionTimeout = NewDuration(0)
	if minor <= 7 {
		mc.SdsUdsPath = "unix:./etc/istio/proxy/SDS"
		mc.ProtocolDetectionTimeout = NewDuration(5 * time.Second)
		mc.DisableMixerHttpReports = true
		mc.ReportBatchMaxEntries = 100
		mc.ReportBatchMaxTime = NewDuration(time.Second)
	}
	if minor >= 14 {
		mc.DnsRefreshRate = NewDuration(60 * time.Second)
	}
	if minor >= 18 {
		mc.ProxyInboundListenPort = 15006
	}
	if minor >= firstMergedProviders {
		mc.DefaultProviders = &DefaultProviders{}
		mc.ExtensionProviders = []*ExtensionProvider{
			{Name: "prometheus", Prometheus: &PrometheusMetricsProvider{}},
			{Name: "stackdriver", Stackdriver: &StackdriverProvider{}},
			{Name: "envoy", EnvoyFileAccessLog: &EnvoyFileAccessLogProvider{Path: "/dev/stdout"}},
		}
	}
	return mc
}

// PrometheusMerge says whether the mesh merges the application's metrics into the proxy's where a pod does not say:
// enablePrometheusMerge, true where it is not set. It is read from Istio 1.6.
func (m *MeshConfig) PrometheusMerge() bool {
	if m == nil || m.EnablePrometheusMerge == nil {
		return true
	}
	return m.EnablePrometheusMerge.Value
}
