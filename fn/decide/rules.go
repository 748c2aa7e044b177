// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/release"
)

// The labels that decide about injection.
const (
	labelInjection = "istio-injection"
	labelRevision  = "istio.io/rev"
	labelInject    = "sidecar.istio.io/inject"
	labelEnv       = "istio-env"
	labelName      = "name"
	// labelNamespaceName is set by the API server on every namespace.
	labelNamespaceName = "kubernetes.io/metadata.name"
)

const defaultRevision = "default"

// Settings are the values of an installation that its webhook configurations were rendered with. They are used only
// if the cluster's own configurations are not known.
type Settings struct {
	// EnableNamespacesByDefault is sidecarInjectorWebhook.enableNamespacesByDefault.
	EnableNamespacesByDefault bool
	// ObjectSelector and AutoInject are sidecarInjectorWebhook.objectSelector.enabled and .autoInject, up to 1.8 and
	// for legacy selectors.
	ObjectSelector, AutoInject bool
	// LegacySelectors is sidecarInjectorWebhook.useLegacySelectors of 1.9 and 1.10.
	LegacySelectors bool
	// InjectLabel is sidecarInjectorWebhook.injectLabel of 1.5; empty means istio-injection.
	InjectLabel string
	// PreferPod reports whether sidecarInjectorWebhook.revisionLabelPreference is pod: a pod's istio.io/rev then
	// overrides its namespace's. It is false for versions without the setting.
	PreferPod bool
	// Namespace is that of the control plane; empty means istio-system.
	Namespace string
}

// systemNamespaces are excluded from the rule for namespaces without any label, from 1.16.
var systemNamespaces = []string{"kube-system", "kube-public", "kube-node-lease", "local-path-storage"}

// BuiltIn returns the webhook configurations that an installation of a release of Istio has: the one of its revision
// ("" or default for the one without a name), and one for each revision tag. They are the charts' own, in their order
// (source: manifests/charts/istio-control/istio-discovery/templates/{mutatingwebhook,revision-tags}.yaml from 1.5, and
// install/kubernetes/helm/istio/charts/sidecarInjectorWebhook/templates/mutatingwebhook.yaml up to 1.4).
func BuiltIn(r release.Release, revision string, tags []string, s Settings) []v1alpha1.Webhook {
	if revision == defaultRevision {
		revision = ""
	}
	if s.Namespace == "" {
		s.Namespace = "istio-system"
	}
	name := "istio-sidecar-injector"
	features := feature.Of(r)
	if revision != "" && features.Has(feature.WebhookOfRevision) {
		name += "-" + revision
	}
	if s.Namespace != "istio-system" {
		name += "-" + s.Namespace
	}
	out := []v1alpha1.Webhook{{Name: name, Revision: revisionOrDefault(revision), Webhooks: revisionRules(features, revision, s)}}
	for _, tag := range tags {
		if !features.Has(feature.RevisionTags) {
			break
		}
		out = append(out, v1alpha1.Webhook{Name: tagPrefix + tag, Revision: revisionOrDefault(revision), Webhooks: tagRules(features, tag, s)})
	}
	return out
}

const tagPrefix = "istio-revision-tag-"

func revisionOrDefault(revision string) string {
	if revision == "" {
		return defaultRevision
	}
	return revision
}

func revisionRules(features feature.Set, revision string, s Settings) []v1alpha1.WebhookRule {
	switch {
	case hasLegacyRule(features, s):
		return []v1alpha1.WebhookRule{legacyRule(features, revision, s)}
	case features.Has(feature.WebhookApart) && revision != "":
		return selectedRules("", revision, s)
	case features.Has(feature.WebhookApart):
		return defaultRules(features, s)
	case revision != "":
		return selectedRules("rev.", revision, s)
	}
	return append(selectedRules("rev.", defaultRevision, s), defaultRules(features, s)...)
}

// hasLegacyRule reports whether the webhook has the one rule of old versions.
func hasLegacyRule(features feature.Set, s Settings) bool {
	return features.Has(feature.WebhookOfOneRule) || features.Has(feature.LegacySelectors) && s.LegacySelectors
}

// tagRules are those of a revision of the tag's name; the tag default also matches the label istio-injection.
func tagRules(features feature.Set, tag string, s Settings) []v1alpha1.WebhookRule {
	if !hasLegacyRule(features, s) && !features.Has(feature.WebhookApart) {
		rules := selectedRules("rev.", tag, s)
		if tag == defaultRevision {
			rules = append(rules, defaultRules(features, s)...)
		}
		return rules
	}
	return revisionRules(features, tag, s)
}

const ruleName = "sidecar-injector.istio.io"

// selectedRules take what istio.io/rev selects, on the namespace or on the pod.
func selectedRules(prefix, revision string, s Settings) []v1alpha1.WebhookRule {
	onNamespace := newWebhookRule(prefix+"namespace."+ruleName,
		selectorRequiringAll(keyInValues(labelRevision, revision), keyDoesNotExist(labelInjection)),
		selectorRequiringAll(keyNotInValues(labelInject, "false")))
	onPod := newWebhookRule(prefix+"object."+ruleName,
		selectorRequiringAll(keyDoesNotExist(labelRevision), keyDoesNotExist(labelInjection)),
		selectorRequiringAll(keyNotInValues(labelInject, "false"), keyInValues(labelRevision, revision)))
	if s.PreferPod {
		onNamespace.ObjectSelector = selectorRequiringAll(keyNotInValues(labelInject, "false"),
			keyDoesNotExist(labelRevision))
		onPod.NamespaceSelector = selectorRequiringAll(keyDoesNotExist(labelInjection))
	}
	return []v1alpha1.WebhookRule{onNamespace, onPod}
}

// defaultRules match istio-injection on the namespace and sidecar.istio.io/inject on the pod, and, if the
// installation enables it, namespaces and pods without any label.
func defaultRules(features feature.Set, s Settings) []v1alpha1.WebhookRule {
	rules := []v1alpha1.WebhookRule{
		newWebhookRule("namespace."+ruleName,
			selectorRequiringAll(keyInValues(labelInjection, "enabled")),
			selectorRequiringAll(keyNotInValues(labelInject, "false"))),
		newWebhookRule("object."+ruleName,
			selectorRequiringAll(keyDoesNotExist(labelInjection), keyDoesNotExist(labelRevision)),
			selectorRequiringAll(keyInValues(labelInject, "true"), keyDoesNotExist(labelRevision))),
	}
	if !s.EnableNamespacesByDefault {
		return rules
	}
	auto := selectorRequiringAll(keyDoesNotExist(labelInjection), keyDoesNotExist(labelRevision))
	if features.Has(feature.AutoLeavesSystem) {
		auto.MatchExpressions = append(auto.MatchExpressions, keyNotInValues(labelNamespaceName, systemNamespaces...))
	}
	return append(rules, newWebhookRule("auto."+ruleName, auto, selectorRequiringAll(keyDoesNotExist(labelInject), keyDoesNotExist(labelRevision))))
}

// legacyRule is the single rule of 1.0 to 1.8, and of 1.9 and 1.10 with legacy selectors.
func legacyRule(features feature.Set, revision string, s Settings) v1alpha1.WebhookRule {
	r := v1alpha1.WebhookRule{Name: ruleName}
	switch {
	case s.EnableNamespacesByDefault && features.Has(feature.WebhookOfHelm):
		r.NamespaceSelector = selectorRequiringAll(keyNotInValues(labelInjection, "disabled"))
	case s.EnableNamespacesByDefault:
		r.NamespaceSelector = selectorRequiringAll(keyNotInValues(labelName, s.Namespace),
			keyNotInValues(labelInjection, "disabled"), keyDoesNotExist(labelEnv), keyDoesNotExist(labelRevision))
	case revision != "" && features.Has(feature.WebhookOfRevision):
		r.NamespaceSelector = selectorRequiringAll(keyDoesNotExist(labelInjection),
			keyInValues(labelRevision, revision))
	case revision != "" && !features.Has(feature.WebhookOfHelm):
		r.NamespaceSelector = selectorRequiringAll(keyNotInValues(labelInjection, "disabled"),
			keyInValues(labelRevision, revision))
	case features.Has(feature.WebhookOfInjectLabel) && s.InjectLabel != "" && s.InjectLabel != labelInjection:
		r.NamespaceSelector = selectorRequiringAll(keyInValues(labelEnv, s.Namespace))
	default:
		r.NamespaceSelector = selectorRequiringAll(keyInValues(labelInjection, "enabled"))
	}
	if features.Has(feature.WebhookOfHelm) || !s.ObjectSelector {
		return r
	}
	switch {
	case s.AutoInject:
		r.ObjectSelector = selectorRequiringAll(keyNotInValues(labelInject, "false"))
	case revision != "" && features.Has(feature.WebhookOfRevision):
		r.ObjectSelector = selectorRequiringAll(keyDoesNotExist(labelInject), keyInValues(labelRevision, revision))
	default:
		r.ObjectSelector = selectorRequiringAll(keyInValues(labelInject, "true"))
	}
	return r
}

func newWebhookRule(name string, namespace, object *v1alpha1.LabelSelector) v1alpha1.WebhookRule {
	return v1alpha1.WebhookRule{Name: name, NamespaceSelector: namespace, ObjectSelector: object}
}

func selectorRequiringAll(list ...v1alpha1.LabelSelectorRequirement) *v1alpha1.LabelSelector {
	return &v1alpha1.LabelSelector{MatchExpressions: list}
}

func keyInValues(key string, values ...string) v1alpha1.LabelSelectorRequirement {
	return v1alpha1.LabelSelectorRequirement{Key: key, Operator: "In", Values: values}
}

func keyNotInValues(key string, values ...string) v1alpha1.LabelSelectorRequirement {
	return v1alpha1.LabelSelectorRequirement{Key: key, Operator: "NotIn", Values: values}
}

func keyDoesNotExist(key string) v1alpha1.LabelSelectorRequirement {
	return v1alpha1.LabelSelectorRequirement{Key: key, Operator: "DoesNotExist"}
}
