// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

// status is how stable Istio calls an annotation.
type status string

const (
	alpha  status = "Alpha"
	beta   status = "Beta"
	stable status = "Stable"
	// templateOnly are read by the stock templates or the injector's code, and are not in Istio's list of annotations.
	templateOnly status = "not in Istio's list"
)

// annotation is one that Istio reads or writes. Source: annotation/annotations.yaml of istio.io/api 1.4 (November 2019), 1.20, 1.24,
// 1.25, 1.26, 1.27, 1.28 and 1.31, and the injector configurations of Istio 1.1 to 1.31.
type annotation struct {
	status status
	// on are the kinds that it belongs on; empty means any.
	on []string
	// deprecated describes what to use instead; it is set if Istio calls the annotation deprecated.
	deprecated string
	// since is the first minor version that knows it, and until the last; 0 where every version does that is known here, or where
	// the version is not known for certain.
	since, until int
}

var (
	onPod     = []string{"Pod"}
	onService = []string{"Service"}
)

// annotations are the known ones.
var annotations = map[string]annotation{
	"ambient.istio.io/bypass-inbound-capture":               {status: alpha, on: onPod},
	"ambient.istio.io/dns-capture":                          {status: alpha, on: onPod, since: 25},
	"ambient.istio.io/redirection":                          {status: beta, on: onPod},
	"ambient.istio.io/waypoint-inbound-binding":             {status: alpha, on: []string{"GatewayClass", "Gateway"}},
	"alpha.istio.io/canonical-serviceaccounts":              {status: alpha, on: onService, deprecated: "nothing: it has no effect any more"},
	"alpha.istio.io/identity":                               {status: alpha, on: onPod, deprecated: "nothing: it has no effect any more"},
	"alpha.istio.io/kubernetes-serviceaccounts":             {status: alpha, on: onService, deprecated: "nothing: it has no effect any more"},
	"galley.istio.io/analyze-suppress":                      {status: alpha},
	"gateway.istio.io/controller-version":                   {status: alpha},
	"gateway.istio.io/name-override":                        {status: alpha, on: []string{"Gateway"}},
	"gateway.istio.io/service-account":                      {status: alpha, on: []string{"Gateway"}},
	"inject.istio.io/templates":                             {status: alpha, on: onPod, since: 9},
	"install.operator.istio.io/chart-owner":                 {status: alpha},
	"install.operator.istio.io/owner-generation":            {status: alpha},
	"install.operator.istio.io/version":                     {status: alpha},
	"istio.io/autoRegistrationGroup":                        {status: alpha, on: []string{"WorkloadEntry"}},
	"istio.io/connectedAt":                                  {status: alpha, on: []string{"WorkloadEntry"}},
	"istio.io/disconnectedAt":                               {status: alpha, on: []string{"WorkloadEntry"}},
	"istio.io/dry-run":                                      {status: alpha, on: []string{"AuthorizationPolicy"}},
	"istio.io/reroute-virtual-interfaces":                   {status: alpha, on: onPod, since: 25},
	"istio.io/rev":                                          {status: alpha, on: onPod},
	"istio.io/use-waypoint-canary-weight":                   {status: alpha, on: []string{"Service", "ServiceEntry", "Namespace"}},
	"istio.io/workloadController":                           {status: alpha, on: []string{"WorkloadEntry"}},
	"kubernetes.io/ingress.class":                           {status: stable, on: []string{"Ingress"}},
	"networking.istio.io/exportTo":                          {status: alpha, on: onService},
	"networking.istio.io/service-type":                      {status: alpha, on: []string{"Gateway"}},
	"networking.istio.io/traffic-distribution":              {status: alpha, on: []string{"Namespace", "Service", "ServiceEntry"}},
	"policy.istio.io/check":                                 {status: alpha, on: onPod, deprecated: "nothing: Istio removed Mixer", until: 7},
	"policy.istio.io/checkBaseRetryWaitTime":                {status: alpha, on: onPod, deprecated: "nothing: Istio removed Mixer", until: 7},
	"policy.istio.io/checkMaxRetryWaitTime":                 {status: alpha, on: onPod, deprecated: "nothing: Istio removed Mixer", until: 7},
	"policy.istio.io/checkRetries":                          {status: alpha, on: onPod, deprecated: "nothing: Istio removed Mixer", until: 7},
	"policy.istio.io/lang":                                  {status: alpha, on: onPod, deprecated: "nothing: Istio removed Mixer", until: 7},
	"prometheus.istio.io/merge-metrics":                     {status: alpha, on: onPod, since: 6},
	"prometheus.istio.io/scrape-targets":                    {status: templateOnly, on: onPod, since: 31},
	"prometheus.istio.io/secure-port":                       {status: templateOnly, on: onPod, since: 31},
	"proxy.istio.io/config":                                 {status: beta, on: onPod, since: 6},
	"proxy.istio.io/overrides":                              {status: alpha, on: onPod, since: 9},
	"readiness.status.sidecar.istio.io/applicationPorts":    {status: alpha, on: onPod},
	"readiness.status.sidecar.istio.io/failureThreshold":    {status: alpha, on: onPod},
	"readiness.status.sidecar.istio.io/initialDelaySeconds": {status: alpha, on: onPod},
	"readiness.status.sidecar.istio.io/periodSeconds":       {status: alpha, on: onPod},
	"security.istio.io/autoMTLS":                            {status: alpha, on: onPod},
	"sidecar.istio.io/agentLogLevel":                        {status: alpha, on: onPod},
	"sidecar.istio.io/bootstrapOverride":                    {status: alpha, on: onPod},
	"sidecar.istio.io/capNetBindService":                    {status: templateOnly, on: onPod},
	"sidecar.istio.io/componentLogLevel":                    {status: alpha, on: onPod},
	"sidecar.istio.io/controlPlaneAuthPolicy":               {status: alpha, on: onPod, deprecated: "the field controlPlaneAuthPolicy of proxy.istio.io/config"},
	"sidecar.istio.io/discoveryAddress":                     {status: alpha, on: onPod, deprecated: "the field discoveryAddress of proxy.istio.io/config"},
	"sidecar.istio.io/enableCoreDump":                       {status: alpha, on: onPod, until: 24},
	"sidecar.istio.io/extraStatTags":                        {status: alpha, on: onPod, deprecated: "the Telemetry API (tagOverrides)"},
	"sidecar.istio.io/inject":                               {status: beta, on: onPod, deprecated: "the label of the same name"},
	"sidecar.istio.io/interceptionMode":                     {status: alpha, on: onPod},
	"sidecar.istio.io/logLevel":                             {status: alpha, on: onPod},
	"sidecar.istio.io/nativeSidecar":                        {status: alpha, on: onPod, since: 24},
	"sidecar.istio.io/proxyCPU":                             {status: alpha, on: onPod},
	"sidecar.istio.io/proxyCPULimit":                        {status: alpha, on: onPod},
	"sidecar.istio.io/proxyImage":                           {status: alpha, on: onPod},
	"sidecar.istio.io/proxyImageType":                       {status: alpha, on: onPod},
	"sidecar.istio.io/proxyMemory":                          {status: alpha, on: onPod},
	"sidecar.istio.io/proxyMemoryLimit":                     {status: alpha, on: onPod},
	"sidecar.istio.io/rewriteAppHTTPProbers":                {status: alpha, on: onPod},
	"sidecar.istio.io/statsCompression":                     {status: alpha, on: onPod, deprecated: "nothing: remove it", since: 26},
	"sidecar.istio.io/statsEvictionInterval":                {status: alpha, on: onPod, since: 28},
	"sidecar.istio.io/statsFlushInterval":                   {status: alpha, on: onPod, since: 28},
	"sidecar.istio.io/statsHistogramBins":                   {status: alpha, on: onPod, since: 28},
	"sidecar.istio.io/statsHistogramBuckets":                {status: alpha, on: onPod},
	"sidecar.istio.io/statsInclusionPrefixes":               {status: alpha, on: onPod, deprecated: "the field proxyStatsMatcher of proxy.istio.io/config"},
	"sidecar.istio.io/statsInclusionRegexps":                {status: alpha, on: onPod, deprecated: "the field proxyStatsMatcher of proxy.istio.io/config"},
	"sidecar.istio.io/statsInclusionSuffixes":               {status: alpha, on: onPod, deprecated: "the field proxyStatsMatcher of proxy.istio.io/config"},
	"sidecar.istio.io/status":                               {status: alpha, on: onPod},
	"sidecar.istio.io/userVolume":                           {status: alpha, on: onPod},
	"sidecar.istio.io/userVolumeMount":                      {status: alpha, on: onPod},
	"status.sidecar.istio.io/port":                          {status: alpha, on: onPod},
	"topology.istio.io/controlPlaneClusters":                {status: alpha, on: []string{"Namespace"}},
	"traffic.istio.io/nodeSelector":                         {status: stable, on: onService},
	"traffic.sidecar.istio.io/excludeInboundPorts":          {status: alpha, on: onPod},
	"traffic.sidecar.istio.io/excludeInterfaces":            {status: alpha, on: onPod, since: 15},
	"traffic.sidecar.istio.io/excludeOutboundIPRanges":      {status: alpha, on: onPod},
	"traffic.sidecar.istio.io/excludeOutboundPorts":         {status: alpha, on: onPod},
	"traffic.sidecar.istio.io/includeInboundPorts":          {status: alpha, on: onPod},
	"traffic.sidecar.istio.io/includeOutboundIPRanges":      {status: alpha, on: onPod},
	"traffic.sidecar.istio.io/includeOutboundPorts":         {status: alpha, on: onPod},
	"traffic.sidecar.istio.io/kubevirtInterfaces":           {status: alpha, on: onPod, deprecated: "istio.io/reroute-virtual-interfaces"},
}

// deprecatedSince maps annotations that were deprecated while already in use to the first minor version of
// istio.io/api, among those read, that marks them as deprecated. Before it the annotation is not reported.
var deprecatedSince = map[string]int{
	"sidecar.istio.io/extraStatTags":              24,
	"sidecar.istio.io/statsCompression":           31,
	"traffic.sidecar.istio.io/kubevirtInterfaces": 28,
	"sidecar.istio.io/inject":                     12, // from this version on the label overrides the annotation
	"sidecar.istio.io/discoveryAddress":           6,  // from this version on proxy.istio.io/config exists
	"sidecar.istio.io/controlPlaneAuthPolicy":     6,
	"sidecar.istio.io/statsInclusionPrefixes":     8,
	"sidecar.istio.io/statsInclusionRegexps":      8,
	"sidecar.istio.io/statsInclusionSuffixes":     8,
}
