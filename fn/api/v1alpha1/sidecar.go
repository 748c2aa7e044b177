// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Sidecar describes a sidecar that is not Istio's: whom it is for, its parameters, what it adds to the pod, and where.
type Sidecar struct {
	// Name of the sidecar. It names the record of what was injected (sidecar.prerig.dev/NAME) and is unique in a policy.
	Name string `json:"name"`
	// Select says which pods get the sidecar. Empty selects none.
	Select SidecarSelect `json:"select,omitempty"`
	// Parameters are what the template reads as .Params, each from an annotation or its default.
	Parameters []SidecarParameter `json:"parameters,omitempty"`
	// Values are free values that the template reads as .Values.
	Values map[string]any `json:"values,omitempty"`
	// Template is a Go template that renders a pod (metadata and spec), which is merged over the workload's pod as a strategic
	// merge patch.
	Template string `json:"template,omitempty"`
	// Containers are changes to the app's own containers.
	Containers []ContainerPatch `json:"containers,omitempty"`
	// Order places the sidecar's containers among the others.
	Order SidecarOrder `json:"order,omitempty"`
	// Objects is a Go template that renders further objects (a YAML stream), such as a ConfigMap, one set a workload.
	Objects string `json:"objects,omitempty"`
	// Guard is set on injected pods so that the sidecar's own runtime injector leaves them alone.
	Guard SidecarGuard `json:"guard,omitempty"`
}

// SidecarSelect says which pods get a sidecar. The narrowing fields (kinds, names, namespaces) must all match; then the
// rules are read in order and the first that matches decides; if none does, Default decides.
type SidecarSelect struct {
	// Kinds of workloads; empty means all.
	Kinds []string `json:"kinds,omitempty"`
	// Names of workloads, with * and ? as wildcards; empty means all.
	Names []string `json:"names,omitempty"`
	// Namespaces, with * and ? as wildcards; empty means all.
	Namespaces []string `json:"namespaces,omitempty"`
	// Rules, the first match decides.
	Rules []SidecarRule `json:"rules,omitempty"`
	// Default is what holds where no rule matches: Inject or Skip (the default).
	// +enum=Inject,Skip
	Default string `json:"default,omitempty"`
}

// SidecarRule decides for the pods that it matches. All fields that are set must match.
type SidecarRule struct {
	// On is what the rule looks at: Pod (the default) or Namespace.
	// +enum=Pod,Namespace
	On string `json:"on,omitempty"`
	// Labels selects by labels.
	Labels *LabelSelector `json:"labels,omitempty"`
	// Annotations selects by annotations, with the same forms as labels.
	Annotations *LabelSelector `json:"annotations,omitempty"`
	// Action is what a match means: Inject, Skip or Fail.
	// +enum=Inject,Skip,Fail
	Action string `json:"action"`
	// Reason is told to the user where the rule decided.
	Reason string `json:"reason,omitempty"`
}

// SidecarParameter is one parameter of a sidecar's template.
type SidecarParameter struct {
	// Name under which the template reads it: .Params.NAME.
	Name string `json:"name"`
	// Annotation of the pod, and with a lower rank of its namespace, that sets it.
	Annotation string `json:"annotation,omitempty"`
	// Prefix reads a family of annotations PREFIX<key> into a map of key to value; it excludes Annotation.
	Prefix string `json:"prefix,omitempty"`
	// Type of the value: string (the default), int, number, bool, duration, quantity, list (comma separated) or json.
	// +enum=string,int,number,bool,duration,quantity,list,json
	Type string `json:"type,omitempty"`
	// Default where no annotation sets it.
	Default any `json:"default,omitempty"`
	// Required fails the workload where nothing sets it.
	Required bool `json:"required,omitempty"`
	// Minimum and Maximum bound an int, number, duration or quantity, in the notation of its type.
	Minimum string `json:"minimum,omitempty"`
	Maximum string `json:"maximum,omitempty"`
	// Enum lists the values that are allowed.
	Enum []string `json:"enum,omitempty"`
	// Pattern is a regular expression (RE2) that the whole text must match.
	Pattern string `json:"pattern,omitempty"`
}

// ContainerPatch changes the app's containers: the ones the pod had before any sidecar.
type ContainerPatch struct {
	// Names of the containers, with * and ? as wildcards; empty means all app containers.
	Names []string `json:"names,omitempty"`
	// NamesFrom is a parameter of type list that gives the names; it excludes Names.
	NamesFrom string `json:"namesFrom,omitempty"`
	// InitContainers also changes the app's init containers.
	InitContainers bool `json:"initContainers,omitempty"`
	// Template is a Go template that renders what is merged over each container (env, volumeMounts, …). It reads .Container
	// besides the data of the sidecar's own template.
	Template string `json:"template"`
}

// SidecarOrder places a sidecar's containers.
type SidecarOrder struct {
	// Position among the containers, and among the init containers: Last (the default), First, Before or After.
	// +enum=First,Last,Before,After
	Position string `json:"position,omitempty"`
	// Container that Before and After refer to. Where the pod has none of that name, Last holds.
	Container string `json:"container,omitempty"`
	// Istio says on which side of Istio's injection the sidecar stands: Inside (the default; Istio is injected after it, and
	// sees it as a part of the app, so that its probes are rewritten and its traffic is captured) or Outside.
	// +enum=Inside,Outside
	Istio string `json:"istio,omitempty"`
}

// SidecarGuard is what is set on an injected pod.
type SidecarGuard struct {
	// Labels to set on the pod.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations to set on the pod.
	Annotations map[string]string `json:"annotations,omitempty"`
}
