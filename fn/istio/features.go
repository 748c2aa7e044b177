// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

// Feature is one thing that some versions of the injector do and others do not.
type Feature string

// The features. Their spans and sources are in featureTable.
const (
	// Configuration.
	NeverAlwaysSelectors  Feature = "neverInjectSelector and alwaysInjectSelector"
	InjectedAnnotations   Feature = "injectedAnnotations"
	RequiresValues        Feature = "data.values"
	TemplatesAnnotation   Feature = "inject.istio.io/templates"
	ProxyOverrides        Feature = "proxy.istio.io/overrides"
	ProxyConfigAnnotation Feature = "proxy.istio.io/config"
	ProxyConfigResources  Feature = "ProxyConfig resources"

	// Decision.
	InjectLabel        Feature = "label sidecar.istio.io/inject"
	InjectStrictValues Feature = "only true and false decide"

	// Status annotation.
	StatusTemplateHash Feature = "status: version is a hash of the template"
	StatusRevision     Feature = "status: revision"

	// Labels that the code and not the template sets.
	LabelTLSMode   Feature = "label security.istio.io/tlsMode set in code"
	LabelCanonical Feature = "labels service.istio.io/canonical-* set in code"
	LabelRevision  Feature = "label istio.io/rev set in code"
	LabelNetwork   Feature = "label topology.istio.io/network set in code"

	// Placement (generations A and B).
	ValidationFirst    Feature = "istio-validation is the first init container"
	HoldFromValues     Feature = "holdApplicationUntilProxyStarts in the values puts the proxy first"
	HoldFromMeshConfig Feature = "holdApplicationUntilProxyStarts in the mesh config puts the proxy first"
	CopyServiceAccount Feature = "the application's service account mount is copied to the proxy"
	ApplyConcurrency   Feature = "--concurrency is set from the proxy's CPU"
	ApplyRedirectAnnot Feature = "podRedirectAnnot is applied"
	DNSConfig          Feature = "dnsConfig of the template replaces the pod's"
	FSGroupSdsToken    Feature = "fsGroup with SDS token mount"
	FSGroupSds         Feature = "fsGroup with SDS"
	FSGroupEnv         Feature = "fsGroup unless ENABLE_LEGACY_FSGROUP_INJECTION is false"
	FSGroupReplacesAll Feature = "fsGroup replaces the whole security context"

	// Cluster and network.
	ClusterFromURL Feature = "cluster and network of the injection URL"

	// Probes.
	ProbeRewrite           Feature = "probe rewrite"
	ProbeRewriteAnnotation Feature = "sidecar.istio.io/rewriteAppHTTPProbers"
	ProbeRewriteValues     Feature = "probe rewrite by values.sidecarInjectorWebhook.rewriteAppHTTPProbe"
	ProbePortFromArgs      Feature = "probe port from the proxy's --statusPort"
	ProbeFirst             Feature = "probes are rewritten before the containers are added"
	ProberNested           Feature = "probers: httpGet and timeoutSeconds"
	ProberOmitEmpty        Feature = "probers: no variable when empty"
	ProberStartup          Feature = "startup probes are rewritten"
	ProberTCP              Feature = "TCP probes are rewritten"
	ProberGRPC             Feature = "gRPC probes are rewritten"
	ProberSkipRewritten    Feature = "probes on the status port are not dumped again"
	ProberMerge            Feature = "probers merge into an existing variable"
	ProberInitContainers   Feature = "init containers' probes are rewritten"
	ProberLifecycle        Feature = "lifecycle handlers are rewritten"

	// Prometheus.
	PrometheusMerge         Feature = "Prometheus merge"
	PrometheusSkipOwnPort   Feature = "Prometheus merge leaves pods alone that have the status port"
	PrometheusVariants      Feature = "Prometheus annotations in every spelling"
	PrometheusScrapeTargets Feature = "prometheus.istio.io/scrape-targets"
	PrometheusSecurePort    Feature = "prometheus.istio.io/secure-port"

	// Native sidecars.
	NativeSidecars          Feature = "native sidecars"
	NativeSidecarAnnotation Feature = "sidecar.istio.io/nativeSidecar"
	NativeSidecarAuto       Feature = "native sidecars by the kubelet's version"

	// What the control plane's Kubernetes types know: it drops other fields of a template without a word.
	ContainerRestartPolicy Feature = "templates can set a container's restartPolicy"

	// Security.
	AdjustInitUser   Feature = "istio-init follows the user's runAsUser"
	OpenShiftUsers   Feature = "user ids from OpenShift's namespace annotations"
	CompliancePolicy Feature = "COMPLIANCE_POLICY"
	ProxyInitImage   Feature = "values.global.proxy_init.image"

	// Annotation validation.
	ValidateMergeMetrics Feature = "validation: prometheus.istio.io/merge-metrics"
	ValidateProxyConfig  Feature = "validation: proxy.istio.io/config"
	ValidateResources    Feature = "validation: proxyCPU, proxyMemory and their limits"
	ValidateInterfaces   Feature = "validation: interface lists"
)

// featureRow says which minors have a feature, and where in Istio that can be checked.
type featureRow struct {
	Feature Feature
	Span
	// Source is the file of github.com/istio/istio, or what else shows it.
	Source string
}

const (
	srcInject    = "pkg/kube/inject/inject.go"
	srcWebhook   = "pkg/kube/inject/webhook.go"
	srcProbe     = "pkg/kube/inject/app_probe.go"
	srcValidate  = "pkg/kube/inject/validate.go"
	srcTemplates = "manifests/charts/istio-control/istio-discovery/files/injection-template.yaml"
	srcFeatures  = "pilot/pkg/features"
)

// featureTable is the one place that says which version does what.
var featureTable = []featureRow{
	{NeverAlwaysSelectors, Span{1, newest}, srcInject},
	{RequiresValues, Span{2, newest}, srcInject},
	{InjectedAnnotations, Span{4, newest}, srcInject},
	{TemplatesAnnotation, Span{9, newest}, srcInject},
	{ProxyOverrides, Span{9, newest}, srcWebhook},
	{ProxyConfigAnnotation, Span{6, newest}, srcInject},
	{ProxyConfigResources, Span{13, newest}, "pilot/pkg/model/proxy_config.go"},

	{InjectLabel, Span{12, newest}, srcInject},
	{InjectStrictValues, Span{27, newest}, srcInject},

	{StatusTemplateHash, Span{0, 8}, srcInject},
	{StatusRevision, Span{11, newest}, srcWebhook},

	{LabelTLSMode, Span{4, 8}, srcWebhook},
	{LabelCanonical, Span{5, 8}, srcWebhook},
	{LabelRevision, Span{6, 8}, srcWebhook},
	{LabelNetwork, Span{8, newest}, srcWebhook},

	{ValidationFirst, Span{6, newest}, srcWebhook},
	{HoldFromValues, Span{7, newest}, srcWebhook},
	{HoldFromMeshConfig, Span{8, newest}, srcWebhook},
	{CopyServiceAccount, Span{1, 8}, srcWebhook},
	{ApplyConcurrency, Span{1, 8}, "pkg/kube/inject/concurrency.go"},
	{ApplyRedirectAnnot, Span{3, 7}, srcInject + ": IntoObject, that is kube-inject; it only says what the CNI plugin would take anyway"},
	{DNSConfig, Span{1, 8}, srcWebhook},
	{FSGroupSdsToken, Span{1, 2}, srcInject},
	{FSGroupSds, Span{3, 7}, srcInject},
	{FSGroupEnv, Span{8, 8}, srcInject},
	{FSGroupReplacesAll, Span{1, 3}, srcInject},

	{ClusterFromURL, Span{8, newest}, srcInject},

	{ProbeRewrite, Span{1, newest}, srcProbe},
	{ProbeRewriteAnnotation, Span{2, newest}, srcProbe},
	{ProbeRewriteValues, Span{9, newest}, srcWebhook},
	{ProbePortFromArgs, Span{1, 5}, srcProbe},
	{ProbeFirst, Span{7, 8}, srcWebhook},
	{ProberNested, Span{5, newest}, srcProbe},
	{ProberStartup, Span{7, newest}, srcProbe},
	{ProberOmitEmpty, Span{8, newest}, srcProbe},
	{ProberSkipRewritten, Span{9, newest}, srcProbe},
	{ProberTCP, Span{12, newest}, srcProbe},
	{ProberGRPC, Span{13, newest}, srcProbe},
	{ProberMerge, Span{17, newest}, srcWebhook},
	{ProberInitContainers, Span{19, newest}, srcProbe},
	{ProberLifecycle, Span{25, newest}, srcProbe},

	{PrometheusMerge, Span{6, newest}, srcWebhook},
	{PrometheusSkipOwnPort, Span{9, newest}, srcWebhook},
	{PrometheusVariants, Span{13, newest}, srcWebhook},
	{PrometheusScrapeTargets, Span{31, newest}, srcWebhook},
	{PrometheusSecurePort, Span{31, newest}, srcWebhook},

	{NativeSidecars, Span{19, newest}, srcFeatures},
	{NativeSidecarAnnotation, Span{24, newest}, srcInject},
	{NativeSidecarAuto, Span{27, newest}, srcWebhook},

	{ContainerRestartPolicy, Span{19, newest}, "k8s.io/api v0.28 in go.mod"},

	{AdjustInitUser, Span{20, newest}, srcWebhook},
	{OpenShiftUsers, Span{20, newest}, "pkg/kube/inject/openshift.go"},
	{CompliancePolicy, Span{19, newest}, srcInject},
	{ProxyInitImage, Span{31, newest}, srcInject},

	{ValidateMergeMetrics, Span{6, newest}, srcValidate},
	{ValidateProxyConfig, Span{6, newest}, srcValidate},
	{ValidateResources, Span{27, newest}, srcValidate},
	{ValidateInterfaces, Span{28, newest}, srcValidate},
}
