// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"maps"
)

// templateOf returns the pod template of a workload; that of a Pod is the Pod.
func templateOf(workload map[string]any) map[string]any {
	path := []string{"spec", "template"}
	switch workload["kind"] {
	case "Pod":
		path = nil
	case "CronJob":
		path = []string{"spec", "jobTemplate", "spec", "template"}
	}
	at := workload
	for _, key := range path {
		at, _ = at[key].(map[string]any)
	}
	return at
}

// podOf returns the pod that a controller creates from a workload, with the metadata it adds that the webhook
// reads: the owner, the names and the labels from which Istio determines the workload. A Pod is returned unchanged.
func podOf(workload map[string]any) map[string]any {
	kind, _ := workload["kind"].(string)
	if kind == "Pod" {
		return workload
	}
	outer, _ := workload["metadata"].(map[string]any)
	name, _ := outer["name"].(string)
	template := templateOf(workload)
	inner, _ := template["metadata"].(map[string]any)
	meta := maps.Clone(inner)
	if meta == nil {
		meta = map[string]any{}
	}
	delete(meta, "name")
	delete(meta, "creationTimestamp")
	meta["namespace"] = outer["namespace"]
	addControllerMetadata(meta, kind, name)
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}
}

// isCustom reports whether a kind is one of custom resources.
func isCustom(kind string) bool { return kind == "Rollout" || kind == "CloneSet" }

// hash is what a Deployment's ReplicaSets have in their names.
const hash = "6d4cf56db6"

// addControllerMetadata adds what the controller of the kind adds.
func addControllerMetadata(meta map[string]any, kind, name string) {
	apiVersion := apiVersions[kind]
	added := map[string]any{}
	generate := name + "-"
	switch kind {
	case "Deployment":
		kind, name, generate = "ReplicaSet", name+"-"+hash, name+"-"+hash+"-"
		added["pod-template-hash"] = hash
	case "StatefulSet":
		meta["name"] = name + "-0"
		added["statefulset.kubernetes.io/pod-name"], added["apps.kubernetes.io/pod-index"] = name+"-0", "0"
		added["controller-revision-hash"] = name + "-" + hash
	case "DaemonSet":
		added["controller-revision-hash"], added["pod-template-generation"] = hash, "1"
	case "CronJob":
		kind, name, generate = "Job", name+"-29400123", name+"-29400123-"
		jobLabels(added, name)
	case "Job":
		jobLabels(added, name)
	case "ReplicationController":
		apiVersion = "v1"
	case "Rollout":
		apiVersion, kind, name, generate = "apps/v1", "ReplicaSet", name+"-"+hash, name+"-"+hash+"-"
		added["rollouts-pod-template-hash"] = hash
	case "CloneSet":
		apiVersion = "apps.kruise.io/v1alpha1"
		added["controller-revision-hash"], added["apps.kruise.io/cloneset-instance-id"] = name+"-"+hash, "x1y2z"
	}
	meta["generateName"] = generate
	had, _ := meta["labels"].(map[string]any)
	if len(added) > 0 || had != nil {
		all := maps.Clone(had)
		if all == nil {
			all = map[string]any{}
		}
		maps.Copy(all, added)
		meta["labels"] = all
	}
	meta["ownerReferences"] = []any{map[string]any{
		"apiVersion": apiVersion, "kind": kind, "name": name, "uid": fmt.Sprintf("%s-uid", name),
		"controller": true, "blockOwnerDeletion": true,
	}}
}

func jobLabels(labels map[string]any, name string) {
	labels["job-name"], labels["batch.kubernetes.io/job-name"] = name, name
	labels["controller-uid"], labels["batch.kubernetes.io/controller-uid"] = "uid", "uid"
}
