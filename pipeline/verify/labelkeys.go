// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"

	"github.com/prerig/prerig/fn/podmap"
)

// The minor versions of Kubernetes since which the API server writes the labels of a pod that matchLabelKeys and mismatchLabelKeys name
// into the selector beside them, when the pod is created (source: PrepareForCreate in pkg/registry/core/pod/strategy.go and the feature
// gates MatchLabelKeysInPodAffinity and MatchLabelKeysInPodTopologySpreadSelectorMerge of k8s.io/kubernetes).
const (
	affinityLabelKeys = 31
	spreadLabelKeys   = 34
)

// expectLabelKeys adds those requirements. The values are the pod's: what its labels may be is a question of its own.
func (v *verifier) expectLabelKeys(out, pod map[string]any) {
	labels := podmap.MapAt(pod, "metadata", "labels")
	if !v.snapshot.olderThan(affinityLabelKeys) {
		for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
			for _, preferred := range mapsAtPath(out, "spec", "affinity", kind, "preferredDuringSchedulingIgnoredDuringExecution") {
				requireLabels(podmap.MapAt(preferred, "podAffinityTerm"), labels, nil)
			}
			for _, term := range mapsAtPath(out, "spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution") {
				requireLabels(term, labels, nil)
			}
		}
	}
	if !v.snapshot.olderThan(spreadLabelKeys) {
		for _, constraint := range mapsAtPath(out, "spec", "topologySpreadConstraints") {
			requireLabels(constraint, labels, ownSelectorRequirement(pod, constraint))
		}
	}
}

// ownSelectorRequirement returns a test of whether the pod's own constraint has a requirement in its selector. Pods
// that are older than an API server that writes them have only the keys, which older ones know too; the requirement is
// written after all that webhooks do, so that none is lost.
func ownSelectorRequirement(pod, constraint map[string]any) func(requirement map[string]any) bool {
	fields := elementKeys["topologySpreadConstraints"]
	own := identityOfElement(constraint, fields).key
	var has []map[string]any
	for _, c := range mapsAtPath(pod, "spec", "topologySpreadConstraints") {
		if identityOfElement(c, fields).key == own {
			has = append(has, mapsAtPath(c, "labelSelector", "matchExpressions")...)
		}
	}
	return func(requirement map[string]any) bool {
		return slices.ContainsFunc(has, func(one map[string]any) bool { return sameJSON(one, requirement) })
	}
}

// requireLabels adds to the selector of a term the requirements of its label keys, if they are expected; if
// expected is nil, all are. A term without a selector matches no pod, and is left unchanged.
func requireLabels(term, labels map[string]any, expected func(requirement map[string]any) bool) {
	selector := podmap.MapAt(term, "labelSelector")
	if selector == nil {
		return
	}
	expressions, _ := selector["matchExpressions"].([]any)
	for _, by := range []struct{ keys, operator string }{{"matchLabelKeys", "In"}, {"mismatchLabelKeys", "NotIn"}} {
		keys, _ := term[by.keys].([]any)
		for _, key := range keys {
			name, _ := key.(string)
			value, ok := labels[name]
			requirement := map[string]any{"key": name, "operator": by.operator, "values": []any{value}}
			if ok && (expected == nil || expected(requirement)) {
				expressions = append(expressions, requirement)
			}
		}
	}
	if len(expressions) > 0 {
		selector["matchExpressions"] = expressions
	}
}
