// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Sidecar describes a sidecar that is not Istio's: whom it is for, its parameters, what it adds to the pod, and where.
type Sidecar struct {
	// Name of the sidecar. It names the record of what was injected, the annotation sidecar.prerig.dev/NAME, and is unique
	// in a policy. Without it the name is that of builtIn.
	// +pattern=^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$
	Name string `json:"name,omitempty"`
	// BuiltIn names a policy that comes with Prerig, such as fluent-bit, whose sidecar this is. Values are merged over its
	// values, and parameters over its parameters of the same name; select, order and guard replace its own where they are set.
	BuiltIn string `json:"builtIn,omitempty"`
	// Select describes which pods get the sidecar. Empty selects none.
	Select SidecarSelect `json:"select,omitempty"`
	// Parameters are what the templates read as .Params, each from an annotation or its default.
	Parameters []SidecarParameter `json:"parameters,omitempty"`
	// OwnAnnotations are prefixes of annotations that are this sidecar's, such as dapr.io/. One on an injected pod that no
	// parameter and no rule reads leads to a warning.
	OwnAnnotations []string `json:"ownAnnotations,omitempty"`
	// Values are free values that the templates read as .Values.
	Values map[string]any `json:"values,omitempty"`
	// Template is a Go template that renders a pod (metadata and spec), which is merged over the workload's pod as
	// a strategic merge patch. It may also print order, in the form of order below, which then overrides it; or
	// only skip, a reason for which the pod does not get the sidecar.
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

// SidecarSelect describes which pods get a sidecar. The narrowing fields (kinds, names, namespaces) must all match;
// then the rules are read in order and the first that matches decides; if none does, Default decides.
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

// SidecarRule decides for the pods that it matches. All fields that are set must match, and at least one is.
type SidecarRule struct {
	// Kinds of workloads.
	Kinds []string `json:"kinds,omitempty"`
	// Names of workloads, with * and ? as wildcards.
	Names []string `json:"names,omitempty"`
	// Namespaces, with * and ? as wildcards.
	Namespaces []string `json:"namespaces,omitempty"`
	// On is whose labels and annotations the rule reads: Pod (the default) or Namespace. If a namespace's are
	// unknown and would decide, spec.unknownNamespace determines what to do; if that is unset, the rule does not
	// match, and if the policy names namespaces it is an error.
	// +enum=Pod,Namespace
	On string `json:"on,omitempty"`
	// Labels selects by labels.
	Labels *LabelSelector `json:"labels,omitempty"`
	// Annotations selects by annotations, with the same forms as labels and any text as values.
	Annotations *LabelSelector `json:"annotations,omitempty"`
	// Action is what a match means: Inject, Skip or Fail.
	// +enum=Inject,Skip,Fail
	Action string `json:"action"`
	// Reason is shown to the user if the rule decided.
	Reason string `json:"reason,omitempty"`
}

// The actions of rules.
const (
	SidecarInject = "Inject"
	SidecarSkip   = "Skip"
	SidecarFail   = "Fail"
)

// SidecarParameter is one parameter of a sidecar's templates. An annotation of the pod overrides one of its namespace,
// and that overrides the default. A parameter that is not set still exists: "" for a string, duration or quantity,
// false for a bool, an empty list or family, and no value for an int, a number or json.
type SidecarParameter struct {
	// Name under which the templates read it: .Params.NAME.
	// +pattern=^[A-Za-z][A-Za-z0-9]*$
	Name string `json:"name"`
	// Annotation of the pod, and with a lower rank of its namespace, that sets it.
	Annotation string `json:"annotation,omitempty"`
	// Aliases are other names of the annotation, which count where it is not set, in this order.
	Aliases []string `json:"aliases,omitempty"`
	// Prefix reads a family of annotations PREFIX<key> into a map of key to value; it excludes annotation.
	Prefix string `json:"prefix,omitempty"`
	// PodOnly does not read the namespace's annotations.
	PodOnly bool `json:"podOnly,omitempty"`
	// Type of the value: string (the default), int, number, bool, duration, quantity, list (comma separated) or json (JSON or
	// YAML). Of a family it is that of each value.
	// +enum=string,int,number,bool,duration,quantity,list,json
	Type string `json:"type,omitempty"`
	// Default where no annotation sets it: a value of the type, or its text as an annotation would have it.
	Default any `json:"default,omitempty"`
	// Required fails the workload if the parameter is not set.
	Required bool `json:"required,omitempty"`
	// Minimum bounds an int, number, duration or quantity, in the notation of its type.
	Minimum string `json:"minimum,omitempty"`
	// Maximum bounds an int, number, duration or quantity, in the notation of its type.
	Maximum string `json:"maximum,omitempty"`
	// Enum lists the texts that are allowed, of a list those of its elements.
	Enum []string `json:"enum,omitempty"`
	// Pattern is a regular expression (RE2) that the whole text must match, of a list each of its elements.
	Pattern string `json:"pattern,omitempty"`
}

// ContainerPatch changes the app's containers: the ones the pod had before any sidecar.
type ContainerPatch struct {
	// Names of the containers, with * and ? as wildcards; empty means all app containers.
	Names []string `json:"names,omitempty"`
	// NamesFrom is a parameter of type list that holds the names; it excludes names. An empty parameter selects all
	// app containers. A name without wildcards that no container has is an error.
	NamesFrom string `json:"namesFrom,omitempty"`
	// InitContainers also changes the app's init containers.
	InitContainers bool `json:"initContainers,omitempty"`
	// Template is a Go template that renders what is merged over each container (env, volumeMounts, …). It reads .Container
	// besides the data of the sidecar's own template.
	Template string `json:"template"`
}

// SidecarOrder places a sidecar's containers. The template determines whether one is an init container, a native
// sidecar (an init container with restartPolicy: Always) or a regular container.
type SidecarOrder struct {
	// Position among the containers, and among the init containers: Last (the default), First, Before or After.
	// +enum=First,Last,Before,After
	Position string `json:"position,omitempty"`
	// Container that Before and After refer to. Where the list has none of that name, Last holds.
	Container string `json:"container,omitempty"`
	// InitPosition is the position among the init containers where it differs from Position.
	// +enum=First,Last,Before,After
	InitPosition string `json:"initPosition,omitempty"`
	// InitContainer is what Before and After of InitPosition refer to.
	InitContainer string `json:"initContainer,omitempty"`
	// Istio is the side of Istio's injection that the sidecar is on: Inside (the default; Istio is injected after
	// it, and sees it as a part of the app, so that its probes are rewritten and its traffic is captured) or
	// Outside.
	// +enum=Inside,Outside
	Istio string `json:"istio,omitempty"`
}

// The positions of containers.
const (
	PositionFirst  = "First"
	PositionLast   = "Last"
	PositionBefore = "Before"
	PositionAfter  = "After"
)

// The sides of Istio's injection.
const (
	IstioInside  = "Inside"
	IstioOutside = "Outside"
)

// SidecarGuard is what is set on an injected pod.
type SidecarGuard struct {
	// Labels to set on the pod.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations to set on the pod.
	Annotations map[string]string `json:"annotations,omitempty"`
}
