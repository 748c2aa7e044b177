// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/podmap"
)

// kruiseGroup has the kinds of OpenKruise.
const kruiseGroup = "apps.kruise.io"

// readinessGate allows the one by which OpenKruise holds pods back that it updates in place (source: newVersionedPods of its CloneSets
// and syncNodes of its DaemonSets).
func (p *compared) readinessGate(c change) bool {
	owner := p.origin.direct
	return c.want == nil && owner.Group == kruiseGroup && (owner.Kind == "CloneSet" || owner.Kind == "DaemonSet") &&
		sameJSON(c.found, map[string]any{"conditionType": "InPlaceUpdateReady"})
}

// committedArgoRollout returns the committed Argo Rollout of the pod, or nil: its workload, or the Rollout that uses
// the template of its workload.
func (p *compared) committedArgoRollout() map[string]any {
	if p.version.Ref.Kind == "Rollout" {
		return p.version.Object
	}
	for _, ref := range p.origin.workloads {
		if w := p.v.heads[ref]; w != nil && ref.Kind == "Rollout" && w.elsewhere != nil && *w.elsewhere == p.version.Ref {
			return w.Object
		}
	}
	return nil
}

// rolloutMetadata lists the metadata that an Argo Rollout sets on its pods while they have a role, by strategy.
var rolloutMetadata = map[string][]string{"canary": {"canaryMetadata", "stableMetadata"}, "blueGreen": {"activeMetadata", "previewMetadata"}}

// isRolloutMetadata reports whether a label or annotation is one that the committed Rollout sets on some of its pods.
func (p *compared) isRolloutMetadata(c change) bool {
	rollout := p.committedArgoRollout()
	for strategy, parts := range rolloutMetadata {
		for _, part := range parts {
			if v, ok := podmap.MapAt(rollout, "spec", "strategy", strategy, part, c.path[1].key)[c.lastPathKey()]; ok && v == c.found {
				return true
			}
		}
	}
	return false
}

// rolloutAffinity allows the term by which a Rollout keeps pods of a new version off the nodes of the stable one.
// It is the last one of its list in the ReplicaSet and remains the last one (source: GenerateReplicaSetAffinity in
// utils/replicaset of argo-rollouts).
func (p *compared) rolloutAffinity(c change) bool {
	strategy := podmap.MapAt(p.committedArgoRollout(), "spec", "strategy")
	apart := podmap.MapAt(strategy, "canary", "antiAffinity")
	if apart == nil {
		apart = podmap.MapAt(strategy, "blueGreen", "antiAffinity")
	}
	kind := "requiredDuringSchedulingIgnoredDuringExecution"
	preferred := podmap.MapAt(apart, "preferredDuringSchedulingIgnoredDuringExecution")
	if preferred != nil {
		kind = "preferredDuringSchedulingIgnoredDuringExecution"
	} else if podmap.MapAt(apart, kind) == nil {
		return false
	}
	terms := mapsAtPath(p.found, "spec", "affinity", "podAntiAffinity", kind)
	if len(terms) == 0 {
		return false
	}
	last := terms[len(terms)-1]
	if preferred != nil {
		if !sameJSON(last["weight"], preferred["weight"]) {
			return false
		}
		last = podmap.MapAt(last, "podAffinityTerm")
	}
	return apartFromStable(last, p.pod) && sameJSON(valueAt(withoutLast(p.found, kind), c.path), c.want)
}

// apartFromStable reports whether a term is the one that a Rollout writes. Which ReplicaSet was the stable one then is not known, but that
// it was another one than the pod's.
func apartFromStable(term, pod map[string]any) bool {
	const key = "rollouts-pod-template-hash"
	expressions := mapsAtPath(term, "labelSelector", "matchExpressions")
	if len(expressions) != 1 {
		return false
	}
	values, _ := expressions[0]["values"].([]any)
	if len(values) != 1 || values[0] == "" || values[0] == podmap.TextAt(pod, "metadata", "labels", key) {
		return false
	}
	return sameJSON(term, map[string]any{
		"labelSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": key, "operator": "In", "values": values}}},
		"namespaces":    []any{refOf(pod).Namespace},
		"topologyKey":   "kubernetes.io/hostname",
	})
}

// withoutLast returns the affinity of a pod, in a pod, without the last term of a list of its anti-affinity, and without what is empty then.
func withoutLast(pod map[string]any, kind string) map[string]any {
	affinity := maps.Clone(podmap.MapAt(pod, "spec", "affinity"))
	apart := maps.Clone(podmap.MapAt(affinity, "podAntiAffinity"))
	terms, _ := apart[kind].([]any)
	apart[kind] = slices.Clone(terms[:len(terms)-1])
	if len(terms) == 1 {
		delete(apart, kind)
	}
	affinity["podAntiAffinity"] = apart
	if len(apart) == 0 {
		delete(affinity, "podAntiAffinity")
	}
	if len(affinity) == 0 {
		return nil
	}
	return map[string]any{"spec": map[string]any{"affinity": affinity}}
}
