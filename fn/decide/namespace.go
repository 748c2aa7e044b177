// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// labelDataplane with the value ambient puts a namespace into the mesh without sidecars.
const (
	labelDataplane = "istio.io/dataplane-mode"
	ambient        = "ambient"
)

// Says reports whether labels of a namespace affect injection: one of them is a label that a rule of the webhooks
// selects, or the label that adds the namespace to the ambient mesh.
func (d *Decider) Says(labels map[string]string) bool {
	return len(d.hooks.labelKeysUsedBy(labels)) > 0
}

// Said returns the labels of a namespace that affect injection, for people.
func (d *Decider) Said(labels map[string]string) string {
	keys := d.hooks.labelKeysUsedBy(labels)
	if len(keys) == 0 {
		return "no label about injection"
	}
	for i, key := range keys {
		keys[i] += "=" + labels[key]
	}
	return strings.Join(keys, " and ")
}

// labelKeysUsedBy returns the keys of such labels in order.
func (w webhookSet) labelKeysUsedBy(labels map[string]string) []string {
	var keys []string
	if labels[labelDataplane] == ambient {
		keys = append(keys, labelDataplane)
	}
	for _, h := range w {
		for _, r := range h.rules {
			for _, q := range r.namespace.requirements {
				if _, ok := labels[q.Key()]; ok && q.Key() != labelNamespaceName {
					keys = append(keys, q.Key())
				}
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Settle returns a namespace as decisions have to read it. If the policy injects into unknown namespaces, one that
// is declared among the manifests counts only with labels that affect injection. Without such labels it is treated
// as unknown: whether a pod is injected must not depend on which other files happen to be read.
func (d *Decider) Settle(ns Namespace, declared bool) Namespace {
	if declared && ns.Known && d.unknown == v1alpha1.UnknownNamespaceInject && !d.Says(ns.Labels) {
		ns.Known, ns.Labels = false, nil
	}
	return ns
}

// describeUnknownNamespace describes what is not known about the namespace of a pod.
func (p Pod) describeUnknownNamespace() string {
	ns := p.Namespace
	switch {
	case ns.Name == "":
		return "the workload names no namespace"
	case ns.Source != "" && ns.Source != SourceUnknown:
		return "namespace " + ns.Name + " has no label about injection (" + ns.Source + ")"
	default:
		return "the labels of namespace " + ns.Name + " are not known"
	}
}

// namespaceHint returns the text to write so that a namespace is known, in a form that can be copied.
func (d *Decider) namespaceHint(ns Namespace) string {
	if ns.Name == "" {
		return "give it with -n NAMESPACE, or add defaultNamespace: NAMESPACE, or unknownNamespace: Inject (or Skip), to the policy's spec"
	}
	label := labelInjection + ": enabled"
	if own := revisionOrDefault(d.options.Revision); own != defaultRevision {
		label = labelRevision + ": " + own
	}
	return "add namespaces: [{name: " + ns.Name + ", labels: {" + label +
		"}}], or unknownNamespace: Inject (or Skip), to the policy's spec"
}
