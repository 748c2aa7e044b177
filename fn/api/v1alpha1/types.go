// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// APIVersion and Kind of an InjectionPolicy.
const (
	APIVersion = "prerig.dev/v1alpha1"
	Kind       = "InjectionPolicy"
)

// InjectionPolicy describes which sidecars are injected into which workloads, and how. It is the functionConfig of
// the function: one object in one file.
type InjectionPolicy struct {
	// APIVersion is prerig.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is InjectionPolicy.
	Kind string `json:"kind"`
	// Metadata names the policy. Only the name is read.
	Metadata Metadata `json:"metadata"`
	// Spec is the content of the policy.
	Spec InjectionPolicySpec `json:"spec"`
	// Source is where the content comes from, for messages.
	Source Source `json:"-"`
}

// Metadata is the part of Kubernetes' object metadata that a policy uses. Other keys are accepted and left alone, as
// tools add their own.
// +lenient
type Metadata struct {
	// Name of the policy.
	// +pattern=.
	Name string `json:"name"`
	// Namespace is not read.
	Namespace string `json:"namespace,omitempty"`
	// Labels are not read.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are not read, but by the tools that run the function, and CompletedAnnotation.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// InjectionPolicySpec is the content of a policy.
type InjectionPolicySpec struct {
	// Mode is what to do: Inject (the default), Remove what was injected, or Check that the input already equals
	// the output of Inject.
	// +enum=Inject,Remove,Check
	Mode Mode `json:"mode,omitempty"`
	// Record is where to keep what an injected pod does not reveal about the original, so that removing the
	// injection restores it exactly: Workload (the default) in an annotation of the workload itself
	// (prerig.dev/undo), which is written only if needed and never reaches the pods; Annotation in each injected
	// pod (prerig.dev/original); None nowhere.
	// +enum=Workload,Annotation,None
	Record Record `json:"record,omitempty"`
	// Jobs is what happens to Jobs and bare Pods that are published already: KeepPublished (the default) keeps
	// their published injection, or keeps them without one, as long as their own spec is unchanged, because the API
	// server rejects other changes to it; Follow injects them again with the current policy. CronJobs follow the
	// policy, and so do objects that may be replaced: those with a generateName, with a hook annotation of Argo CD
	// or Helm, or with kustomize.toolkit.fluxcd.io/force: enabled or argocd.argoproj.io/sync-options: Force=true.
	// +enum=KeepPublished,Follow
	Jobs Jobs `json:"jobs,omitempty"`
	// From is where the rest of the policy is read from on each use: Cluster completes it with the namespaces of
	// the cluster and their labels and, if istio has no injector of its own, with the configuration, the mesh
	// config and the webhooks of the revision. The policy's own settings take precedence. Only prerig serve and
	// prerig daemon worker read a cluster.
	// +enum=Cluster
	From From `json:"from,omitempty"`
	// Istio injects Istio's proxy. Without it no part of Istio is injected.
	Istio *Istio `json:"istio,omitempty"`
	// Namespaces lists labels and annotations of namespaces, and their other content that matters for pods. A Namespace
	// among the items overrides it if it has a label about injection, and is completed by it otherwise.
	Namespaces []Namespace `json:"namespaces,omitempty"`
	// UnknownNamespace is what to do with a workload whose namespace's labels would decide and are not known: Inject (the
	// default where the policy names no namespaces and has no webhooks), Skip, or Fail (the default otherwise).
	// With Inject a Namespace among the items counts only where it has a label about injection, so that whether a pod is
	// injected does not depend on which other files are read.
	// +enum=Inject,Skip,Fail
	UnknownNamespace UnknownNamespace `json:"unknownNamespace,omitempty"`
	// DefaultNamespace is the namespace of objects that name none: what a Flux targetNamespace or an Argo CD destination
	// will set.
	// +pattern=^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$
	DefaultNamespace string `json:"defaultNamespace,omitempty"`
	// TargetNamespace overrides the namespace of every object, as a Flux Kustomization's targetNamespace does. It is used for
	// the decision and the rendering only and is not written.
	// +pattern=^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// Workloads lists custom resources that hold a pod template.
	Workloads []WorkloadKind `json:"workloads,omitempty"`
	// Sidecars are sidecars that are not Istio's.
	Sidecars []Sidecar `json:"sidecars,omitempty"`
	// Admission sets which steps of the API server's admission are written into workloads, and which are only predicted.
	Admission *PodAdmission `json:"admission,omitempty"`
	// Images pins the images of injected containers to digests, or those of all.
	Images *Images `json:"images,omitempty"`
	// Lint sets which rules are checked and how severe they are.
	Lint *Lint `json:"lint,omitempty"`
}

// From is where a policy is completed from.
type From string

// FromCluster is the cluster that the daemon reads its pipelines from.
const FromCluster From = "Cluster"

// CompletedAnnotation names the source that a policy was completed from: Cluster. Its namespaces are then not those
// that the policy's author listed, and lint reads only those that hold objects.
const CompletedAnnotation = "prerig.dev/completed-from"

// Mode is what a policy does.
type Mode string

// The modes.
const (
	ModeInject Mode = "Inject"
	ModeRemove Mode = "Remove"
	ModeCheck  Mode = "Check"
)

// Record is where the original is kept.
type Record string

// The ways to record.
const (
	RecordWorkload   Record = "Workload"
	RecordNone       Record = "None"
	RecordAnnotation Record = "Annotation"
)

// Jobs is what happens to Jobs and bare Pods that are published already. The empty value means KeepPublished.
type Jobs string

// What happens to published Jobs and bare Pods.
const (
	JobsKeepPublished Jobs = "KeepPublished"
	JobsFollow        Jobs = "Follow"
)

// UnknownNamespace is what to do where a namespace is not known.
type UnknownNamespace string

// What to do with workloads of unknown namespaces.
const (
	UnknownNamespaceInject UnknownNamespace = "Inject"
	UnknownNamespaceSkip   UnknownNamespace = "Skip"
	UnknownNamespaceFail   UnknownNamespace = "Fail"
)

// Istio is the part of a policy that injects Istio's proxy.
type Istio struct {
	// Version of Istio, such as "1.32" or "1.32.0". Without it the version is found in the values' tag or the image tag.
	// +pattern=^(v?1\.\d{1,3}(\.\d+)?([-+][0-9A-Za-z.+-]+)?)?$
	Version string `json:"version,omitempty"`
	// Injector is the injector's configuration.
	Injector Injector `json:"injector,omitempty"`
	// MeshConfig is data.mesh of the ConfigMap istio, verbatim. If it is empty, it is read from the ConfigMap among
	// the items, if present; otherwise the version's own defaults apply.
	MeshConfig string `json:"meshConfig,omitempty"`
	// Revision of the control plane. Empty means default.
	// +pattern=^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$
	Revision string `json:"revision,omitempty"`
	// NativeSidecars is Auto (the default: as the control plane of the version would decide, which needs kubernetesVersion),
	// Enabled or Disabled.
	// +enum=Auto,Enabled,Disabled
	NativeSidecars NativeSidecars `json:"nativeSidecars,omitempty"`
	// KubernetesVersion is the version of the oldest kubelet, such as "1.34". The defaults that the API server sets before the
	// webhook sees a pod are those of this version too; without it those of the newest one that is known.
	// +pattern=^(v?1\.\d{1,3}(\.\d+)?([-+][0-9A-Za-z.+-]+)?)?$
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Admission is how the templates see a pod: Defaulted (the default) as the webhook does, with the API server's
	// defaults, or Raw as it is written, as istioctl kube-inject does. None of the defaults is written to the
	// workload.
	// +enum=Defaulted,Raw
	Admission Admission `json:"admission,omitempty"`
	// IstiodEnv is the environment of the control plane that templates read with env and that changes the injector.
	IstiodEnv map[string]string `json:"istiodEnv,omitempty"`
	// Cluster is the cluster's name, as in the injection URL (/inject/cluster/NAME).
	Cluster string `json:"cluster,omitempty"`
	// Network is the network's name, as in the injection URL (/inject/net/NAME).
	Network string `json:"network,omitempty"`
	// ProxyEnv holds the other variables that the injection URL adds to the environment of every proxy, since Istio
	// 1.8: /inject/my_var/VALUE sets MY_VAR.
	ProxyEnv map[string]string `json:"proxyEnv,omitempty"`
	// Webhooks are the cluster's MutatingWebhookConfigurations that decide which pods the injector sees. Without them, and
	// without any among the items, the version's own selectors hold.
	Webhooks []Webhook `json:"webhooks,omitempty"`
	// RevisionTags are the revision tags of the cluster that point to this revision.
	// +pattern=^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$
	RevisionTags []string `json:"revisionTags,omitempty"`
	// RuntimeWebhook is Keep (the default), or Disable to mark injected pods so that the cluster's webhook leaves them alone.
	// +enum=Keep,Disable
	RuntimeWebhook RuntimeWebhook `json:"runtimeWebhook,omitempty"`
	// RootNamespace is the namespace of mesh-wide resources. If empty, the mesh config's is used, or istio-system.
	// +pattern=^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$
	RootNamespace string `json:"rootNamespace,omitempty"`
}

// Injector is where the injector's configuration comes from: exactly one of its fields, or none to use the ConfigMap
// istio-sidecar-injector among the items.
type Injector struct {
	// Config is data.config of the ConfigMap istio-sidecar-injector, verbatim.
	Config string `json:"config,omitempty"`
	// Values is data.values of the same ConfigMap, verbatim.
	Values string `json:"values,omitempty"`
	// ConfigMap names the ConfigMap among the items. It defaults to istio-sidecar-injector, with the revision, if
	// any, as a suffix.
	ConfigMap *ConfigMapRef `json:"configMap,omitempty"`
	// BuiltIn names a policy that comes with Prerig, such as istio, whose configuration and values are used. That of
	// istio is made for the version or the tag among the overrides, from Istio 1.28 to 1.32; other versions are
	// rejected.
	BuiltIn string `json:"builtIn,omitempty"`
	// Overrides are merged over the values: the settings that a user would change.
	Overrides map[string]any `json:"overrides,omitempty"`
}

// ConfigMapRef names a ConfigMap among the items.
type ConfigMapRef struct {
	// Name of the ConfigMap.
	// +pattern=.
	Name string `json:"name"`
	// Namespace is the namespace of the ConfigMap; if empty, any namespace matches.
	Namespace string `json:"namespace,omitempty"`
}

// Admission is how the templates see a pod.
type Admission string

// The ways to see a pod.
const (
	AdmissionDefaulted Admission = "Defaulted"
	AdmissionRaw       Admission = "Raw"
)

// NativeSidecars reports whether the proxy is an init container that always restarts.
type NativeSidecars string

// The settings of native sidecars.
const (
	NativeSidecarsAuto     NativeSidecars = "Auto"
	NativeSidecarsEnabled  NativeSidecars = "Enabled"
	NativeSidecarsDisabled NativeSidecars = "Disabled"
)

// RuntimeWebhook is what the cluster's webhook is to do with injected pods.
type RuntimeWebhook string

// The settings of the runtime webhook.
const (
	RuntimeWebhookKeep    RuntimeWebhook = "Keep"
	RuntimeWebhookDisable RuntimeWebhook = "Disable"
)

// Webhook is one MutatingWebhookConfiguration, reduced to what decides whether a pod is sent to the injector.
type Webhook struct {
	// Name of the MutatingWebhookConfiguration.
	// +pattern=.
	Name string `json:"name"`
	// Revision that it calls; empty means the policy's own.
	Revision string `json:"revision,omitempty"`
	// Webhooks are its entries.
	Webhooks []WebhookRule `json:"webhooks"`
}

// WebhookRule is one entry of a MutatingWebhookConfiguration. Other keys of the entry are accepted and not read.
// +lenient
type WebhookRule struct {
	// Name of the entry, such as rev.namespace.sidecar-injector.istio.io.
	Name string `json:"name"`
	// NamespaceSelector selects namespaces by their labels; none selects all.
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`
	// ObjectSelector selects pods by their labels; none selects all.
	ObjectSelector *LabelSelector `json:"objectSelector,omitempty"`
	// MatchConditions are not evaluated: a rule counts as if they were met, and the results report this.
	MatchConditions []any `json:"matchConditions,omitempty"`
}

// LabelSelector is Kubernetes' label selector.
type LabelSelector struct {
	// MatchLabels must all be present with these values.
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	// MatchExpressions must all hold.
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// LabelSelectorRequirement is one requirement of a label selector.
type LabelSelectorRequirement struct {
	// Key of the label.
	Key string `json:"key"`
	// Operator is In or NotIn, which need values, or Exists or DoesNotExist, which have none.
	// +enum=In,NotIn,Exists,DoesNotExist
	Operator string `json:"operator"`
	// Values of the label.
	Values []string `json:"values,omitempty"`
}

// Namespace holds labels and annotations of a namespace, and its other content that matters for its pods.
type Namespace struct {
	// Name of the namespace.
	// +pattern=^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$
	Name string `json:"name"`
	// Labels, which the webhook's selectors read.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations, such as OpenShift's ranges of user ids.
	Annotations map[string]string `json:"annotations,omitempty"`
	// ServiceAccounts are those of the namespace that have pull secrets, which the API server adds to pods before the
	// webhook sees them. One of the same name among the items overrides it.
	ServiceAccounts []ServiceAccount `json:"serviceAccounts,omitempty"`
	// LimitRanges are those of the namespace, from which the API server fills in resources before the webhook sees a
	// pod. One of the same name among the items overrides it.
	LimitRanges []LimitRange `json:"limitRanges,omitempty"`
	// ProxyConfigs are Istio's ProxyConfig resources of the namespace, the oldest first: if several select a pod,
	// the oldest applies. Those of the root namespace apply to the whole mesh. One of the same name among the items
	// overrides it.
	ProxyConfigs []ProxyConfig `json:"proxyConfigs,omitempty"`
}

// ServiceAccount is a service account, reduced to what reaches a pod.
type ServiceAccount struct {
	// Name of the service account.
	// +pattern=.
	Name string `json:"name"`
	// ImagePullSecrets are the names of its pull secrets.
	ImagePullSecrets []string `json:"imagePullSecrets"`
}

// LimitRange is a LimitRange of Kubernetes.
type LimitRange struct {
	// Name of the LimitRange.
	// +pattern=.
	Name string `json:"name"`
	// Limits is its spec.limits.
	Limits []any `json:"limits"`
}

// ProxyConfig is a ProxyConfig resource of Istio.
type ProxyConfig struct {
	// Name of the resource.
	// +pattern=.
	Name string `json:"name"`
	// Spec is its spec.
	Spec map[string]any `json:"spec,omitempty"`
	// Revision is its label istio.io/rev. A control plane reads those without one and those of its own revision.
	Revision string `json:"revision,omitempty"`
}

// WorkloadKind describes where a custom resource keeps its pod template.
type WorkloadKind struct {
	// APIVersion of the resource, such as argoproj.io/v1alpha1, or its group with any version, such as argoproj.io/*.
	// +pattern=^([^/*]+/([^/*]+|\*)|[^/*]+)$
	APIVersion string `json:"apiVersion"`
	// Kind of the resource.
	// +pattern=.
	Kind string `json:"kind"`
	// PodTemplate is the path of the object that has metadata and spec of the pod, such as spec.template. A part that ends in
	// [] is a list or a map of which every element holds a pod template.
	// +pattern=^[^\[\]{}()*/"' \t\n$.]+(\[\])?(\.[^\[\]{}()*/"' \t\n$.]+(\[\])?)*$
	PodTemplate string `json:"podTemplate"`
	// Owner is the controller that the pods will have, where that is not the resource itself.
	Owner *WorkloadOwner `json:"owner,omitempty"`
}

// WorkloadOwner names the controller of the pods of a custom resource. Empty fields are those of the resource itself.
type WorkloadOwner struct {
	// APIVersion of the controller, such as apps/v1.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind of the controller, such as StatefulSet.
	Kind string `json:"kind,omitempty"`
	// Name is the name of the controller, in which {name} represents the resource's name and {key} the map key or
	// list index matched by [] in the path, such as "{name}-{key}".
	Name string `json:"name,omitempty"`
}
