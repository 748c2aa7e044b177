// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

// The minor versions of Kubernetes since which the API server writes the labels of a pod that matchLabelKeys and mismatchLabelKeys name
// into the selector beside them, when the pod is created (source: PrepareForCreate in pkg/registry/core/pod/strategy.go and the feature
// gates MatchLabelKeysInPodAffinity and MatchLabelKeysInPodTopologySpreadSelectorMerge of k8s.io/kubernetes).
const (
	affinityLabelKeys = 31
	spreadLabelKeys   = 34
)

// expectLabelKeys adds those requirements. The values are the pod's: what its labels may be is a question of its own.
func (v *verifier) expectLabelKeys(out, pod map[string]any) {
	labels := table(pod, "metadata", "labels")
	if !v.snapshot.olderThan(affinityLabelKeys) {
		for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
			for _, preferred := range list(out, "spec", "affinity", kind, "preferredDuringSchedulingIgnoredDuringExecution") {
				requireLabels(table(preferred, "podAffinityTerm"), labels)
			}
			for _, term := range list(out, "spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution") {
				requireLabels(term, labels)
			}
		}
	}
	if !v.snapshot.olderThan(spreadLabelKeys) {
		for _, constraint := range list(out, "spec", "topologySpreadConstraints") {
			requireLabels(constraint, labels)
		}
	}
}

// requireLabels adds to the selector of a term what its label keys ask for. Without a selector it matches nothing, and stays so.
func requireLabels(term, labels map[string]any) {
	selector := table(term, "labelSelector")
	if selector == nil {
		return
	}
	expressions, _ := selector["matchExpressions"].([]any)
	for _, by := range []struct{ keys, operator string }{{"matchLabelKeys", "In"}, {"mismatchLabelKeys", "NotIn"}} {
		keys, _ := term[by.keys].([]any)
		for _, key := range keys {
			name, _ := key.(string)
			if value, ok := labels[name]; ok {
				expressions = append(expressions, map[string]any{"key": name, "operator": by.operator, "values": []any{value}})
			}
		}
	}
	if len(expressions) > 0 {
		selector["matchExpressions"] = expressions
	}
}
