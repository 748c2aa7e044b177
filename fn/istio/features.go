// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import "github.com/prerig/prerig/fn/istio/release"

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
	// ProxyConfigFirstName is the name that the annotation proxy.istio.io/config began with.
	ProxyConfigFirstName Feature = "the annotation proxy.istio.io/config is called istio.io/proxyConfig"
	ProxyConfigImage     Feature = "the image of a ProxyConfig resource"

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
	HoldFromAnnotation Feature = "holdApplicationUntilProxyStarts in the pod's proxy config puts the proxy first"
	HoldFromMeshConfig Feature = "holdApplicationUntilProxyStarts in the mesh config puts the proxy of a pod without a proxy config of its own first"
	CopyServiceAccount Feature = "the application's service account mount is copied to the proxy"
	ApplyConcurrency   Feature = "--concurrency is set from the proxy's CPU"
	ApplyRedirectAnnot Feature = "podRedirectAnnot is applied"
	DNSConfig          Feature = "dnsConfig of the template replaces the pod's"
	FSGroupSdsToken    Feature = "fsGroup with SDS token mount"
	FSGroupSds         Feature = "fsGroup with SDS"
	FSGroupEnv         Feature = "fsGroup unless ENABLE_LEGACY_FSGROUP_INJECTION is false"
	FSGroupReplacesAll Feature = "fsGroup replaces the whole security context"

	// Cluster and network.
	ClusterFromURL    Feature = "cluster and network of the injection URL"
	ClusterOnlyBoth   Feature = "cluster and network of the injection URL only where it has both"
	VariablesOfURL    Feature = "other variables of the injection URL"
	ClusterFromValues Feature = "cluster and network of the values"

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
	ProberTCPSwitch        Feature = "REWRITE_TCP_PROBES"
	ProberGRPC             Feature = "gRPC probes are rewritten"
	ProberSkipRewritten    Feature = "probes on the status port are not dumped again"
	ProberMerge            Feature = "probers merge into an existing variable"
	ProberMergeAppends     Feature = "probers of a pod that is injected again get a variable"
	ProberInitContainers   Feature = "init containers' probes are rewritten"
	ProberLifecycle        Feature = "lifecycle handlers are rewritten"

	// Prometheus.
	PrometheusMerge         Feature = "Prometheus merge"
	PrometheusSkipOwnPort   Feature = "Prometheus merge leaves pods alone that have the status port"
	PrometheusVariants      Feature = "Prometheus annotations in every spelling"
	PrometheusPortChecked   Feature = "validation: prometheus.io/port"
	PrometheusScrapeTargets Feature = "prometheus.istio.io/scrape-targets"
	PrometheusSecurePort    Feature = "prometheus.istio.io/secure-port"

	// Native sidecars.
	NativeSidecars          Feature = "native sidecars"
	NativeSidecarAnnotation Feature = "sidecar.istio.io/nativeSidecar"
	NativeSidecarAuto       Feature = "native sidecars by the kubelet's version"

	// What the control plane's Kubernetes types know: it drops other fields of a template without a word.
	ContainerRestartPolicy Feature = "templates can set a container's restartPolicy"

	// Security.
	AdjustInitUser      Feature = "istio-init follows the user's runAsUser"
	DropForeignUser     Feature = "the user's runAsUser is dropped where the template's is not 1337"
	OpenShiftUsers      Feature = "user ids from OpenShift's namespace annotations"
	OpenShiftSharedUser Feature = "a runAsUser that the proxy shares with the application is dropped"
	OpenShiftSharedInit Feature = "a runAsUser that the proxy shares with an init container is dropped"

	// Images.
	ImageVariant      Feature = "values.global.variant is the image type"
	ImageVariantEmpty Feature = "values.global.variant is the image type where the proxy config's is empty"
	InitImageApart    Feature = "the init image does not follow the proxy config's image type"

	// Concurrency.
	ConcurrencyEstimated Feature = ".EstimatedConcurrency has a value"

	// Annotation validation.
	ValidateMergeMetrics         Feature = "validation: prometheus.istio.io/merge-metrics"
	ValidateProxyConfig          Feature = "validation: proxy.istio.io/config"
	ValidateResources            Feature = "validation: proxyCPU, proxyMemory and their limits"
	ValidateInterfaces           Feature = "validation: interface lists"
	ValidateCoreDump             Feature = "validation: enableCoreDump"
	ValidateApplicationPorts     Feature = "validation: applicationPorts"
	ValidateExcludeOutboundPorts Feature = "validation: excludeOutboundPorts"
	ValidateLaxRanges            Feature = "validation: ranges of addresses may have leading zeros"
	ValidateStatusPort           Feature = "validation: statusPort of the proxy config"
	ValidateTLSCredentials       Feature = "validation: credentialName alone in TLS settings of the proxy config"
	ValidateTLSUnverified        Feature = "validation: insecureSkipVerify in TLS settings of the proxy config"
	ValidateTLSRevocation        Feature = "validation: caCrl in TLS settings of the proxy config"
	ValidateTLSConfigMap         Feature = "validation: a ConfigMap as credentialName in the proxy config"
	ValidateHostIP               Feature = "validation: $(HOST_IP) in the address of Zipkin"
	ValidatePrivateKeyProvider   Feature = "validation: privateKeyProvider of the proxy config"
	ValidateConnectionSettings   Feature = "validation: connectionSettings of the proxy config"
)

// featureRow says which releases have a feature, and where in Istio that can be checked.
type featureRow struct {
	Feature Feature
	release.Spans
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

	srcValidation = "pkg/config/validation"
)

// featureTable is the one place that says which version does what.
var featureTable = []featureRow{
	{NeverAlwaysSelectors, release.Since("1.1"), srcInject},
	{RequiresValues, release.Since("1.2"), srcInject},
	{InjectedAnnotations, release.Since("1.4"), srcInject},
	{TemplatesAnnotation, release.Since("1.9"), srcInject},
	{ProxyOverrides, release.Since("1.9"), srcWebhook},
	{ProxyConfigAnnotation, release.Since("1.6"), srcInject},
	{ProxyConfigFirstName, release.Between("1.6.0", "1.6.0"), srcInject},
	{ProxyConfigResources, release.Since("1.13"), "pilot/pkg/model/proxy_config.go"},
	{ProxyConfigImage, release.Since("1.14.2"), "pilot/pkg/model/proxy_config.go"},

	{InjectLabel, release.Since("1.12"), srcInject},
	{InjectStrictValues, release.Since("1.27"), srcInject},

	{StatusTemplateHash, release.Between("1.0", "1.8"), srcInject},
	{StatusRevision, release.Since("1.11"), srcWebhook},

	{LabelTLSMode, release.Between("1.4", "1.8"), srcWebhook},
	{LabelCanonical, release.Between("1.5", "1.8"), srcWebhook},
	{LabelRevision, release.Between("1.6", "1.8"), srcWebhook},
	{LabelNetwork, release.Since("1.8"), srcWebhook},

	{ValidationFirst, release.Since("1.6"), srcWebhook},
	{HoldFromValues, release.Since("1.7"), srcWebhook},
	{HoldFromAnnotation, release.Since("1.8"), srcWebhook},
	{HoldFromMeshConfig, release.Between("1.8", "1.8").And(release.Since("1.9.1")), srcWebhook},
	{CopyServiceAccount, release.Between("1.1", "1.8"), srcWebhook},
	{ApplyConcurrency, release.Between("1.1", "1.8"), "pkg/kube/inject/concurrency.go"},
	{ApplyRedirectAnnot, release.Between("1.3", "1.7"), srcInject + ": IntoObject, that is kube-inject; it only says what the CNI plugin would take anyway"},
	{DNSConfig, release.Between("1.1", "1.8"), srcWebhook},
	{FSGroupSdsToken, release.Between("1.1", "1.2"), srcInject},
	{FSGroupSds, release.Between("1.3", "1.7"), srcInject},
	{FSGroupEnv, release.Between("1.8", "1.8"), srcInject},
	{FSGroupReplacesAll, release.Between("1.1", "1.4.4"), srcInject},

	{ClusterFromURL, release.Since("1.6.1"), srcWebhook},
	{ClusterOnlyBoth, release.Between("1.6.1", "1.7"), srcWebhook},
	{VariablesOfURL, release.Since("1.8"), srcWebhook},
	{ClusterFromValues, release.Since("1.8"), srcInject},

	{ProbeRewrite, release.Since("1.1"), srcProbe},
	{ProbeRewriteAnnotation, release.Since("1.2"), srcProbe},
	{ProbeRewriteValues, release.Since("1.9"), srcWebhook},
	{ProbePortFromArgs, release.Between("1.1", "1.5"), srcProbe},
	{ProbeFirst, release.Between("1.7", "1.8"), srcWebhook},
	{ProberNested, release.Since("1.5"), srcProbe},
	{ProberStartup, release.Since("1.7"), srcProbe},
	{ProberOmitEmpty, release.Since("1.8"), srcProbe},
	{ProberSkipRewritten, release.Since("1.9"), srcProbe},
	{ProberTCP, release.Since("1.12"), srcProbe},
	{ProberTCPSwitch, release.Between("1.12", "1.18"), srcFeatures},
	{ProberGRPC, release.Since("1.13"), srcProbe},
	{ProberMerge, release.Since("1.17"), srcWebhook},
	{ProberMergeAppends, release.Since("1.27"), srcWebhook},
	{ProberInitContainers, release.Since("1.19"), srcProbe},
	{ProberLifecycle, release.Since("1.25"), srcProbe},

	{PrometheusMerge, release.Since("1.6"), srcWebhook},
	{PrometheusSkipOwnPort, release.Since("1.9"), srcWebhook},
	{PrometheusVariants, release.Since("1.13"), srcWebhook},
	{PrometheusPortChecked, release.Since("1.31"), srcWebhook},
	{PrometheusScrapeTargets, release.Since("1.31"), srcWebhook},
	{PrometheusSecurePort, release.Since("1.31"), srcWebhook},

	{NativeSidecars, release.Since("1.19"), srcFeatures},
	{NativeSidecarAnnotation, release.Since("1.24"), srcInject},
	{NativeSidecarAuto, release.Since("1.27"), srcWebhook},

	{ContainerRestartPolicy, release.Since("1.19"), "k8s.io/api v0.28 in go.mod"},

	{AdjustInitUser, release.Since("1.20.7", "1.21.3", "1.22.1", "1.23"), srcWebhook},
	{DropForeignUser, release.Between("1.20.1", "1.20.6").And(release.Between("1.21.0", "1.21.2")).And(release.Between("1.22.0", "1.22.0")), srcWebhook},
	{OpenShiftUsers, release.Since("1.20"), "pkg/kube/inject/openshift.go"},
	{OpenShiftSharedUser, release.Since("1.23.1"), srcWebhook},
	{OpenShiftSharedInit, release.Since("1.27"), srcWebhook},

	{ImageVariant, release.Since("1.22"), srcInject},
	{ImageVariantEmpty, release.Since("1.31"), srcInject},
	{InitImageApart, release.Since("1.31"), srcInject},

	{ConcurrencyEstimated, release.Between("1.11", "1.17"), srcInject},

	{ValidateMergeMetrics, release.Since("1.6"), srcValidate},
	{ValidateProxyConfig, release.Since("1.6"), srcValidate},
	{ValidateResources, release.Since("1.27.6", "1.28.4", "1.29"), srcValidate},
	{ValidateInterfaces, release.Since("1.30"), srcValidate},
	{ValidateCoreDump, release.Between("1.5", "1.24"), srcInject},
	{ValidateApplicationPorts, release.Between("1.0.3", "1.4"), srcInject},
	{ValidateExcludeOutboundPorts, release.Since("1.2"), srcInject},
	{ValidateLaxRanges, release.Between("1.0", "1.15"), srcInject},
	{ValidateStatusPort, release.Since("1.11"), srcValidation},
	{ValidateTLSCredentials, release.Since("1.7"), srcValidation},
	{ValidateTLSUnverified, release.Since("1.19"), srcValidation},
	{ValidateTLSRevocation, release.Since("1.22"), srcValidation},
	{ValidateTLSConfigMap, release.Since("1.26"), srcValidation},
	{ValidateHostIP, release.Since("1.8"), srcValidation},
	{ValidatePrivateKeyProvider, release.Since("1.14"), srcValidation},
	{ValidateConnectionSettings, release.Since("1.31"), srcValidation},
}
