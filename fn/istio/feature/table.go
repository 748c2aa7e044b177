// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package feature

import "github.com/prerig/prerig/fn/istio/release"

// The features. The releases that have them and the sources are in table.
const (
	// Configuration.
	NeverAlwaysSelectors Name = "neverInjectSelector and alwaysInjectSelector"
	InjectedAnnotations  Name = "injectedAnnotations"
	Values               Name = "data.values"
	// TemplatesMerged also brought the annotations inject.istio.io/templates and proxy.istio.io/overrides.
	TemplatesMerged       Name = "templates have names and are merged into the pod"
	ProxyConfigAnnotation Name = "proxy.istio.io/config"
	ProxyConfigResources  Name = "ProxyConfig resources"
	// ProxyConfigFirstName is the name that the annotation proxy.istio.io/config began with.
	ProxyConfigFirstName Name = "the annotation proxy.istio.io/config is called istio.io/proxyConfig"
	ProxyConfigImage     Name = "the image of a ProxyConfig resource"
	// DiscoveryFilter is what istiod does without the variable of DiscoveryFilterSwitch, where it reads that.
	DiscoveryFilter       Name = "resources of namespaces that discoverySelectors leave out are not read"
	DiscoveryFilterSwitch Name = "ENABLE_ENHANCED_RESOURCE_SCOPING"

	// Decision.
	InjectLabel        Name = "label sidecar.istio.io/inject"
	InjectStrictValues Name = "only true and false decide"
	IgnoredNodeLease   Name = "the namespaces kube-node-lease and local-path-storage are ignored"

	// The webhook configurations that an installation has.
	WebhookOfHelm            Name = "the chart sidecarInjectorWebhook has the webhook"
	WebhookOfOneRule         Name = "the webhook has one rule"
	WebhookOfRevision        Name = "webhook configurations bear their revision's name, and istio.io/rev alone selects"
	WebhookOfInjectLabel     Name = "sidecarInjectorWebhook.injectLabel"
	WebhookApart             Name = "the webhook of a revision and the one without have different rules"
	LegacySelectors          Name = "sidecarInjectorWebhook.useLegacySelectors"
	LegacySelectorsByDefault Name = "sidecarInjectorWebhook.useLegacySelectors is true by default"
	RevisionTags             Name = "revision tags"
	AutoLeavesSystem         Name = "enableNamespacesByDefault leaves the system's namespaces out"

	// The owner of a pod.
	CronJobOfBeta      Name = "CronJobs are taken for batch/v1beta1"
	CronJobByName      Name = "a Job whose name ends in ten digits is a CronJob's"
	CronJobByShortName Name = "a Job whose name ends in eight or nine digits is a CronJob's"

	// The mesh configuration.
	ConcurrencyIsNumber   Name = "concurrency of a proxy config is a plain number"
	DefaultsOfPilot       Name = "the built-in mesh config is Pilot's"
	DefaultsOfFirst       Name = "the built-in mesh config has few fields"
	DefaultsReencoded     Name = "zero values in defaultConfig give the defaults back"
	DefaultTelemetry      Name = "the built-in proxy config has empty telemetry services"
	DefaultConcurrency    Name = "the built-in proxy config has a concurrency of 2"
	DefaultZipkin         Name = "the built-in proxy config traces to Zipkin"
	DefaultTermination    Name = "the built-in proxy config has terminationDrainDuration and mutual TLS"
	DefaultMixer          Name = "the built-in mesh config has Mixer's fields"
	DefaultSlowDNS        Name = "the built-in mesh config refreshes DNS once a minute"
	DefaultInboundPort    Name = "the built-in mesh config has proxyInboundListenPort"
	DefaultInboundPolicy  Name = "the built-in mesh config has inboundTrafficPolicy"
	ParentShutdown        Name = "parentShutdownDuration"
	ProvidersMerged       Name = "extension providers and trust domain aliases join the built-in ones"
	ProxyMetadataMerged   Name = "how proxyMetadata merges"
	ProxyConfigReplaced   Name = "how proxy configs merge"
	ProxyConfigDurations  Name = "durations of proxy configs merge as messages"
	ProxyHeadersMerged    Name = "how proxyHeaders merge"
	JSONKeepsEmpty        Name = "protoToJSON writes lists and maps that are empty"
	JSONWithoutDefaults   Name = "protoToJSON leaves defaults of the proxy config out"
	JSONWithoutDrain      Name = "protoToJSON leaves the default drain and control plane authentication out"
	JSONWithoutNoMetadata Name = "protoToJSON leaves an empty proxyMetadata out"

	// Merging.
	InstructedIsAdded Name = "what a template deletes or replaces is added where the pod does not have it"

	// Status annotation.
	StatusRevision   Name = "status: revision"
	ListedIsInjected Name = "status: no container that it lists is the user's"

	// Labels that the code and not the template sets.
	LabelTLSMode   Name = "label security.istio.io/tlsMode set in code"
	LabelCanonical Name = "labels service.istio.io/canonical-* set in code"
	LabelRevision  Name = "label istio.io/rev set in code"
	LabelNetwork   Name = "label topology.istio.io/network set in code"

	// Placement (generations A and B).
	ValidationFirst    Name = "istio-validation is the first init container"
	HoldFromValues     Name = "holdApplicationUntilProxyStarts in the values puts the proxy first"
	HoldFromAnnotation Name = "holdApplicationUntilProxyStarts in the pod's proxy config puts the proxy first"
	HoldFromMeshConfig Name = "holdApplicationUntilProxyStarts in the mesh config puts the proxy of a pod without a proxy config of its own first"
	CopyServiceAccount Name = "the application's service account mount is copied to the proxy"
	ApplyConcurrency   Name = "--concurrency is set from the proxy's CPU"
	ApplyRedirectAnnot Name = "podRedirectAnnot is applied"
	DNSConfig          Name = "dnsConfig of the template replaces the pod's"
	FSGroupSdsToken    Name = "fsGroup with SDS token mount"
	FSGroupSds         Name = "fsGroup with SDS"
	FSGroupEnv         Name = "fsGroup unless ENABLE_LEGACY_FSGROUP_INJECTION is false"
	FSGroupReplacesAll Name = "fsGroup replaces the whole security context"

	// Cluster and network.
	ClusterFromURL    Name = "cluster and network of the injection URL"
	ClusterOnlyBoth   Name = "cluster and network of the injection URL only where it has both"
	VariablesOfURL    Name = "other variables of the injection URL"
	ClusterFromValues Name = "cluster and network of the values"

	// Probes.
	ProbeRewrite           Name = "probe rewrite"
	ProbeRewriteAnnotation Name = "sidecar.istio.io/rewriteAppHTTPProbers"
	ProbePortFromArgs      Name = "probe port from the proxy's --statusPort"
	ProberNested           Name = "probers: httpGet and timeoutSeconds"
	ProberOmitEmpty        Name = "probers: no variable when empty"
	ProberStartup          Name = "startup probes are rewritten"
	ProberTCP              Name = "TCP probes are rewritten"
	ProberTCPSwitch        Name = "REWRITE_TCP_PROBES"
	ProberGRPC             Name = "gRPC probes are rewritten"
	ProberSkipRewritten    Name = "probes on the status port are not dumped again"
	ProberMerge            Name = "probers merge into an existing variable"
	ProberMergeAppends     Name = "probers of a pod that is injected again get a variable"
	ProberInitContainers   Name = "init containers' probes are rewritten"
	ProberLifecycle        Name = "lifecycle handlers are rewritten"

	// Prometheus.
	PrometheusMerge         Name = "Prometheus merge"
	PrometheusSkipOwnPort   Name = "Prometheus merge leaves pods alone that have the status port"
	PrometheusVariants      Name = "Prometheus annotations in every spelling"
	PrometheusPortChecked   Name = "validation: prometheus.io/port"
	PrometheusScrapeTargets Name = "prometheus.istio.io/scrape-targets"
	PrometheusSecurePort    Name = "prometheus.istio.io/secure-port"

	// Native sidecars.
	NativeSidecars          Name = "native sidecars"
	NativeSidecarAnnotation Name = "sidecar.istio.io/nativeSidecar"
	NativeSidecarAuto       Name = "native sidecars by the kubelet's version"

	// Security.
	AdjustInitUser      Name = "istio-init follows the user's runAsUser"
	DropForeignUser     Name = "the user's runAsUser is dropped where the template's is not 1337"
	OpenShiftUsers      Name = "user ids from OpenShift's namespace annotations"
	OpenShiftSharedUser Name = "a runAsUser that the proxy shares with the application is dropped"
	OpenShiftSharedInit Name = "a runAsUser that the proxy shares with an init container is dropped"

	// Images.
	ImageVariant      Name = "values.global.variant is the image type"
	ImageVariantEmpty Name = "values.global.variant is the image type where the proxy config's is empty"
	InitImageApart    Name = "the init image does not follow the proxy config's image type"

	// Concurrency.
	ConcurrencyEstimated Name = ".EstimatedConcurrency has a value"

	// Annotation validation.
	ValidateMergeMetrics         Name = "validation: prometheus.istio.io/merge-metrics"
	ValidateProxyConfig          Name = "validation: proxy.istio.io/config"
	ValidateResources            Name = "validation: proxyCPU, proxyMemory and their limits"
	ValidateInterfaces           Name = "validation: interface lists"
	ValidateCoreDump             Name = "validation: enableCoreDump"
	ValidateApplicationPorts     Name = "validation: applicationPorts"
	ValidateExcludeOutboundPorts Name = "validation: excludeOutboundPorts"
	ValidateLaxRanges            Name = "validation: ranges of addresses may have leading zeros"
	ValidateStatusPort           Name = "validation: statusPort of the proxy config"
	ValidateTLSCredentials       Name = "validation: credentialName alone in TLS settings of the proxy config"
	ValidateTLSUnverified        Name = "validation: insecureSkipVerify in TLS settings of the proxy config"
	ValidateTLSRevocation        Name = "validation: caCrl in TLS settings of the proxy config"
	ValidateTLSConfigMap         Name = "validation: a ConfigMap as credentialName in the proxy config"
	ValidateHostIP               Name = "validation: $(HOST_IP) in the address of Zipkin"
	ValidatePrivateKeyProvider   Name = "validation: privateKeyProvider of the proxy config"
	ValidateConnectionSettings   Name = "validation: connectionSettings of the proxy config"
)

const (
	srcInject    = "pkg/kube/inject/inject.go"
	srcWebhook   = "pkg/kube/inject/webhook.go"
	srcProbe     = "pkg/kube/inject/app_probe.go"
	srcValidate  = "pkg/kube/inject/validate.go"
	srcTemplates = "manifests/charts/istio-control/istio-discovery/files/injection-template.yaml"
	srcFeatures  = "pilot/pkg/features"

	srcValidation = "pkg/config/validation"

	// srcMesh is pilot/pkg/model/context.go up to 1.2.
	srcMesh         = "pkg/config/mesh/mesh.go"
	srcMeshProto    = "mesh/v1alpha1/proxy.proto of istio.io/api"
	srcProxyConfig  = "pilot/pkg/model/proxy_config.go"
	srcHelmWebhook  = "install/kubernetes/helm/istio/charts/sidecarInjectorWebhook/templates/mutatingwebhook.yaml"
	srcWebhookChart = "manifests/charts/istio-control/istio-discovery/templates/mutatingwebhook.yaml"
)

var table = []featureRow{
	{NeverAlwaysSelectors, release.Since("1.1"), srcInject},
	{Values, release.Since("1.2"), srcInject},
	{TemplatesMerged, release.Since("1.9"), srcInject},
	{InjectedAnnotations, release.Since("1.4"), srcInject},
	{ProxyConfigAnnotation, release.Since("1.6"), srcInject},
	{ProxyConfigFirstName, release.Between("1.6.0", "1.6.0"), srcInject},
	{ProxyConfigResources, release.Since("1.13"), srcProxyConfig},
	{ProxyConfigImage, release.Since("1.14.2"), srcProxyConfig},
	{DiscoveryFilter, release.Since("1.22"), "pilot/pkg/config/kube/crdclient/client.go"},
	{DiscoveryFilterSwitch, release.Between("1.16", "1.24"), srcFeatures},

	{InjectLabel, release.Since("1.12"), srcInject},
	{InjectStrictValues, release.Since("1.27"), srcInject},
	{IgnoredNodeLease, release.Since("1.9"), srcInject},

	{WebhookOfHelm, release.Between("1.0", "1.4"), srcHelmWebhook},
	{WebhookOfOneRule, release.Between("1.0", "1.8"), srcWebhookChart},
	{WebhookOfRevision, release.Since("1.6"), srcWebhookChart},
	{WebhookOfInjectLabel, release.Between("1.5", "1.5"), srcWebhookChart},
	{WebhookApart, release.Between("1.9", "1.9"), srcWebhookChart},
	{LegacySelectors, release.Between("1.9", "1.10"), srcWebhookChart},
	{LegacySelectorsByDefault, release.Between("1.9", "1.9"), srcWebhookChart},
	{RevisionTags, release.Since("1.8"), "istioctl/cmd/tag.go; the charts have them since 1.10"},
	{AutoLeavesSystem, release.Since("1.16"), srcWebhookChart},

	{CronJobOfBeta, release.Between("1.0", "1.21"), "pkg/kube/util.go; istio/istio#27195, #49328"},
	{CronJobByName, release.Since("1.6.10", "1.7.2", "1.8"), "pkg/kube/util.go, up to 1.7 " + srcWebhook},
	{CronJobByShortName, release.Since("1.10.6", "1.11.5", "1.12.1", "1.13"), "pkg/kube/util.go"},

	{ConcurrencyIsNumber, release.Between("1.0", "1.6"), srcMeshProto},
	{DefaultsOfPilot, release.Between("1.0", "1.5"), srcMesh},
	{DefaultsOfFirst, release.Between("1.0", "1.0"), srcMesh},
	{DefaultsReencoded, release.Between("1.0", "1.5"), srcMesh},
	{DefaultTelemetry, release.Between("1.3", "1.7"), srcMesh},
	{DefaultConcurrency, release.Between("1.6", "1.17"), srcMesh},
	{DefaultZipkin, release.Between("1.6", "1.21"), srcMesh},
	{DefaultTermination, release.Since("1.7"), srcMesh},
	{DefaultMixer, release.Between("1.1", "1.7"), srcMesh},
	{DefaultSlowDNS, release.Since("1.14"), srcMesh},
	{DefaultInboundPort, release.Since("1.18"), srcMesh},
	{DefaultInboundPolicy, release.Since("1.22"), srcMesh},
	{ParentShutdown, release.Between("1.0", "1.16"), srcMesh},
	{ProvidersMerged, release.Since("1.12"), srcMesh},
	{ProxyMetadataMerged, release.Since("1.10.3"), srcMesh},
	{ProxyConfigReplaced, release.Since("1.16.4", "1.17.2"), srcProxyConfig},
	{ProxyConfigDurations, release.Between("1.13.0", "1.14.4").And(release.Between("1.15.0", "1.15.0")), srcProxyConfig},
	{ProxyHeadersMerged, release.Since("1.19.1"), srcMesh},
	{JSONKeepsEmpty, release.Between("1.0", "1.13"), srcInject},
	{JSONWithoutDefaults, release.Since("1.6"), srcInject},
	{JSONWithoutDrain, release.Since("1.7"), srcInject},
	{JSONWithoutNoMetadata, release.Since("1.9"), srcInject},

	{InstructedIsAdded, release.Between("1.9", "1.18"), "k8s.io/apimachinery before v0.28 in go.mod"},

	{StatusRevision, release.Since("1.11"), srcWebhook},
	{ListedIsInjected, release.Since("1.17"), srcWebhook},

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
	{ApplyRedirectAnnot, release.Between("1.3", "1.7"), srcInject + ": IntoObject, that is kube-inject, and not the webhook (docs/limits.md)"},
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
	{ProbePortFromArgs, release.Between("1.1", "1.5"), srcProbe},
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
