// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package decide

// Code is the stable name of a reason.
type Code string

// The reasons. The first group lets a pod be injected, the second leaves it out before the injector is asked, the third
// is the injector's own.
const (
	// CodeWebhook: a rule of the webhook matches the pod, and the pod does not override it.
	CodeWebhook Code = "webhook"
	// CodePodAsks: the pod's label or annotation sidecar.istio.io/inject asks for it.
	CodePodAsks Code = "pod-asks"
	// CodeAlwaysSelector: alwaysInjectSelector of the injector's configuration matches.
	CodeAlwaysSelector Code = "always-inject-selector"
	// CodeNamespaceNotAsked: no namespace is known, so only the pod itself decides.
	CodeNamespaceNotAsked Code = "namespace-not-asked"
	// CodeNamespaceUnknownInject: the namespace is not known, and unknownNamespace is Inject.
	CodeNamespaceUnknownInject Code = "namespace-unknown-inject"

	// CodeNamespaceLabel: the labels of the namespace, or their absence, keep the webhook from being called.
	CodeNamespaceLabel Code = "namespace-label"
	// CodePodLabel: the labels of the pod, or their absence, keep the webhook from being called.
	CodePodLabel Code = "pod-label"
	// CodeNoLabel: neither the namespace nor the pod asks for injection.
	CodeNoLabel Code = "no-label"
	// CodeSelector: no selector of the webhooks matches, for another reason than those above.
	CodeSelector Code = "no-webhook"
	// CodeOtherRevision: the webhook of another revision matches the pod.
	CodeOtherRevision Code = "other-revision"
	// CodeNamespaceUnknownSkip and CodeNamespaceUnknownFail: the namespace is not known, and unknownNamespace
	// decides.
	CodeNamespaceUnknownSkip Code = "namespace-unknown-skip"
	CodeNamespaceUnknownFail Code = "namespace-unknown-fail"

	// CodeHostNetwork: the pod is on the host's network.
	CodeHostNetwork Code = "host-network"
	// CodeIgnoredNamespace: the injector leaves out the system's namespaces.
	CodeIgnoredNamespace Code = "ignored-namespace"
	// CodePodRefuses: the pod's label or annotation sidecar.istio.io/inject refuses it.
	CodePodRefuses Code = "pod-refuses"
	// CodeNeverSelector: neverInjectSelector of the injector's configuration matches.
	CodeNeverSelector Code = "never-inject-selector"
	// CodePolicyDisabled: the injector's policy is disabled and the pod does not ask.
	CodePolicyDisabled Code = "policy-disabled"
)

// Decision is what was decided for a pod.
type Decision struct {
	// Inject reports whether the pod is injected.
	Inject bool `json:"inject"`
	// Failed reports that no decision is possible and that the policy treats that as an error. Inject is false
	// then.
	Failed bool `json:"failed,omitempty"`
	// Code is the stable name of the reason.
	Code Code `json:"code"`
	// Reason is the same as one sentence, without a full stop.
	Reason string `json:"reason"`
	// Webhook is the rule that calls the injector of the policy's revision; nil where none does, or where the namespace
	// is not known.
	Webhook *Match `json:"webhook,omitempty"`
	// Others are further rules that take the pod. With them the cluster would inject it more than once, or by another
	// revision.
	Others []Match `json:"others,omitempty"`
	// Revision whose injector is called; "default" for the one without a name. Empty where none is called.
	Revision string `json:"revision,omitempty"`
	// Deciding is the fact that decided; nil if no single fact did.
	Deciding *Fact `json:"deciding,omitempty"`
	// Namespace is what was known of the namespace.
	Namespace Namespace `json:"namespace"`
	// Warnings are for the user, each one sentence without a full stop.
	Warnings []string `json:"warnings,omitempty"`
	// Trace has every step, in the cluster's order. Only Explain fills it.
	Trace []Step `json:"trace,omitempty"`
}

// Match is a rule of a webhook that matches a pod.
type Match struct {
	// Config is the name of the MutatingWebhookConfiguration.
	Config string `json:"config"`
	// Rule is the name of the entry in it.
	Rule string `json:"rule"`
	// Revision that it calls; "default" for the one without a name.
	Revision string `json:"revision,omitempty"`
	// Tag is the revision tag that the configuration is for, where it is known.
	Tag string `json:"tag,omitempty"`
	// Source is the origin of the rule, such as "the policy" or "Istio 1.31".
	Source string `json:"source,omitempty"`
	// Conditional reports whether the rule has matchConditions, which were not evaluated.
	Conditional bool `json:"conditional,omitempty"`
}

// String returns "config rule".
func (m Match) String() string { return m.Config + " " + m.Rule }

// Level is whose property a fact is.
type Level string

// The levels.
const (
	LevelNamespace Level = "namespace"
	LevelPod       Level = "pod"
	LevelInjector  Level = "injector"
)

// Fact is a property that decided.
type Fact struct {
	// Level is whose property it is.
	Level Level `json:"level"`
	// Kind of property: label, annotation, field, selector or setting.
	Kind string `json:"kind"`
	// Key of it, such as istio-injection.
	Key string `json:"key"`
	// Value that it has; empty where Missing.
	Value string `json:"value,omitempty"`
	// Missing reports that the absence of the label or annotation decided.
	Missing bool `json:"missing,omitempty"`
	// Source is its origin: a file, "the policy", "the workload", the injector's configuration, or "not known".
	Source string `json:"source,omitempty"`
}

// String returns "namespace label istio-injection=enabled", or "no namespace label istio-injection".
func (f Fact) String() string {
	s := string(f.Level) + " " + f.Kind + " " + f.Key
	switch {
	case f.Missing:
		return "no " + s
	case f.Value != "":
		return s + "=" + f.Value
	}
	return s
}

// Answer of a step.
type Answer string

// The answers. Undecided leaves the decision to the next step.
const (
	Yes       Answer = "yes"
	No        Answer = "no"
	Undecided Answer = "continue"
	Unknown   Answer = "unknown"
)

// The stages of a step: the API server's choice of webhooks, and the injector's own decision.
const (
	StageWebhook  = "webhook"
	StageInjector = "injector"
)

// Step is one question on the way to a decision.
type Step struct {
	// Stage is StageWebhook or StageInjector.
	Stage string `json:"stage"`
	// What was asked: a rule of a webhook, or a question of the injector.
	What string `json:"what"`
	// Answer to it.
	Answer Answer `json:"answer"`
	// Because is the reason for the answer.
	Because string `json:"because"`
}
