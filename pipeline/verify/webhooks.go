// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/prerig/prerig/fn/podmap"
)

// mutator is something of the cluster that may change pods as they are created.
type mutator struct {
	name          string // CONFIGURATION/WEBHOOK
	rules         []admissionregistrationv1.RuleWithOperations
	namespaces    labels.Selector
	objects       labels.Selector
	configuration map[string]any
}

// mutatorsReachingPods returns the webhooks and mutating policies of the snapshot that pods reach.
func (s *Snapshot) mutatorsReachingPods() []mutator {
	var out []mutator
	for _, obj := range s.webhooks {
		var c admissionregistrationv1.MutatingWebhookConfiguration
		if runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &c) != nil {
			continue
		}
		for _, w := range c.Webhooks {
			m := mutator{name: c.Name + "/" + w.Name, rules: w.Rules, configuration: obj}
			if m.setSelectors(w.NamespaceSelector, w.ObjectSelector) {
				out = append(out, m)
			}
		}
	}
	for _, obj := range s.policies {
		var c admissionregistrationv1.MutatingWebhook
		constraints := podmap.MapAt(obj, "spec", "matchConstraints")
		if constraints == nil {
			continue
		}
		shape := map[string]any{
			"rules": constraints["resourceRules"], "namespaceSelector": constraints["namespaceSelector"], "objectSelector": constraints["objectSelector"],
		}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(shape, &c) != nil {
			continue
		}
		m := mutator{name: "MutatingAdmissionPolicy " + podmap.TextAt(obj, "metadata", "name"), rules: c.Rules, configuration: obj}
		if m.setSelectors(c.NamespaceSelector, c.ObjectSelector) {
			out = append(out, m)
		}
	}
	return out
}

// setSelectors reads both selectors, and reports whether that was possible.
func (m *mutator) setSelectors(namespaces, objects *metav1.LabelSelector) bool {
	var err error
	if namespaces == nil {
		namespaces = &metav1.LabelSelector{}
	}
	if objects == nil {
		objects = &metav1.LabelSelector{}
	}
	if m.namespaces, err = metav1.LabelSelectorAsSelector(namespaces); err != nil {
		return false
	}
	m.objects, err = metav1.LabelSelectorAsSelector(objects)
	return err == nil
}

// reachesPodCreation reports whether the creation of a pod with these labels in a namespace with those reaches the
// webhook.
func (m mutator) reachesPodCreation(namespace, pod labels.Set) bool {
	return slices.ContainsFunc(m.rules, createsPods) && m.namespaces.Matches(namespace) && m.objects.Matches(pod)
}

func createsPods(r admissionregistrationv1.RuleWithOperations) bool {
	any := func(values []string, wanted ...string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return slices.Contains(wanted, v) })
	}
	var operations []string
	for _, o := range r.Operations {
		operations = append(operations, string(o))
	}
	return any(operations, "CREATE", "*") && any(r.APIGroups, "", "*") && any(r.APIVersions, "v1", "*") && any(r.Resources, "pods", "*", "*/*", "pods/*")
}

// webhooksOf returns the names of what may have changed a pod when it was created.
func (v *verifier) webhooksOf(p *compared) []string {
	namespace := refOf(p.pod).Namespace
	own := labels.Set{"kubernetes.io/metadata.name": namespace}
	for key, value := range podmap.MapAt(v.snapshot.objects[newRef("v1", "Namespace", "", namespace)], "metadata", "labels") {
		own[key], _ = value.(string)
	}
	with := labels.Set{}
	for key, value := range podmap.MapAt(p.want, "metadata", "labels") {
		with[key], _ = value.(string)
	}
	var names []string
	for _, m := range v.mutators {
		if m.reachesPodCreation(own, with) && !creationTime(m.configuration).After(creationTime(p.pod)) {
			names = append(names, m.name)
		}
	}
	return names
}
