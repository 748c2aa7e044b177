// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/fn/workload"
)

// SettingsOf reads the settings of an installation from its values (data.values of the injector's ConfigMap), with
// the defaults of the release's charts for absent values.
func SettingsOf(r release.Release, values map[string]any) Settings {
	hook := mapOf(values["sidecarInjectorWebhook"])
	object := mapOf(hook["objectSelector"])
	global := mapOf(values["global"])
	s := Settings{LegacySelectors: feature.In(r, feature.LegacySelectorsByDefault), AutoInject: true}
	s.EnableNamespacesByDefault, _ = hook["enableNamespacesByDefault"].(bool)
	s.ObjectSelector, _ = object["enabled"].(bool)
	if auto, ok := object["autoInject"].(bool); ok {
		s.AutoInject = auto
	}
	if legacy, ok := hook["useLegacySelectors"].(bool); ok {
		s.LegacySelectors = legacy
	}
	s.InjectLabel, _ = hook["injectLabel"].(string)
	s.PreferPod = hook["revisionLabelPreference"] == "pod"
	s.Namespace, _ = global["istioNamespace"].(string)
	return s
}

func mapOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// OptionsFor are the options of a policy with its injector. Where the policy names no revision and no tags, those of
// the values hold. The caller adds Webhooks and WebhookSource where the configurations are not the policy's own.
func OptionsFor(inj *istio.Injector, spec *v1alpha1.InjectionPolicySpec) Options {
	r, values := inj.Profile().Release(), map[string]any(inj.Values())
	o := Options{
		Release: r, Settings: SettingsOf(r, values), Policy: inj.Config().Policy,
		Never: inj.NeverMatches, Always: inj.AlwaysMatches, CNI: inj.Values().CNI(),
		UnknownNamespace: spec.UnknownNamespace, NamesNamespaces: len(spec.Namespaces) > 0,
	}
	o.Revision, _ = values["revision"].(string)
	tags, _ := values["revisionTags"].([]any)
	for _, t := range tags {
		if tag, ok := t.(string); ok {
			o.RevisionTags = append(o.RevisionTags, tag)
		}
	}
	if i := spec.Istio; i != nil {
		o.Webhooks = i.Webhooks
		if i.Revision != "" {
			o.Revision = i.Revision
		}
		for _, tag := range i.RevisionTags {
			if !slices.Contains(o.RevisionTags, tag) {
				o.RevisionTags = append(o.RevisionTags, tag)
			}
		}
	}
	return o
}

// PodOf reads from a pod (metadata and spec) the parts that the decision needs. The error names a label or
// annotation that is not a text.
func PodOf(pod map[string]any, owner workload.Owner, ns Namespace) (Pod, error) {
	p := Pod{Workload: owner.Kind, Name: owner.Name, Namespace: ns}
	var err error
	if p.Labels, err = workload.Labels(pod); err != nil {
		return Pod{}, err
	}
	if p.Annotations, err = workload.Annotations(pod); err != nil {
		return Pod{}, err
	}
	p.HostNetwork, _ = mapOf(pod["spec"])["hostNetwork"].(bool)
	return p, nil
}
