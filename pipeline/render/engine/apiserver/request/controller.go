// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/prerig/prerig/fn/workload"
)

// The labels of Jobs without the prefix of newer ones.
const (
	legacyJobName = "job-name"
	legacyJobUID  = "controller-uid"
)

// drawnLabels are the labels that controllers add to pods, and whose values only a cluster knows, by the kind of the workload.
var drawnLabels = map[string][]string{
	"Deployment":  {appsv1.DefaultDeploymentUniqueLabelKey},
	"StatefulSet": {appsv1.ControllerRevisionHashLabelKey},
	"DaemonSet":   {appsv1.ControllerRevisionHashLabelKey, "pod-template-generation"},
	"Job":         {batchv1.ControllerUidLabel, legacyJobUID, batchv1.JobCompletionIndexAnnotation},
	"CronJob":     {batchv1.ControllerUidLabel, legacyJobUID, batchv1.JobNameLabel, legacyJobName, batchv1.JobCompletionIndexAnnotation},
}

// DrawnLabels returns the keys of the labels that the controller of a workload adds to its pods, and whose values only a cluster knows.
func DrawnLabels(owner workload.Owner) []string { return drawnLabels[owner.Kind] }

// addByController sets what the controller adds to a new pod of a workload, as far as it follows from the workload: the name of a pod of a
// StatefulSet with the labels of its ordinal, which is the first one, and the labels of a Job.
func addByController(metadata map[string]any, object map[string]any, t workload.Template, name string) {
	added := map[string]any{}
	switch {
	case name == "":
		return
	case t.Owner.Kind == "StatefulSet" && t.Owner.APIVersion == "apps/v1":
		ordinal := firstOrdinal(object)
		metadata["name"] = name + "-" + ordinal
		added[appsv1.StatefulSetPodNameLabel], added[appsv1.PodIndexLabel] = metadata["name"], ordinal
	case t.Owner.Kind == "Job" && t.Owner.APIVersion == "batch/v1":
		added[batchv1.JobNameLabel], added[legacyJobName] = name, name
	default:
		return
	}
	if labels, ok := metadata["labels"].(map[string]any); ok {
		labels = maps.Clone(labels)
		maps.Copy(labels, added)
		added = labels
	}
	metadata["labels"] = added
}

// firstOrdinal returns the ordinal of the first pod of a StatefulSet.
func firstOrdinal(object map[string]any) string {
	spec, _ := object["spec"].(map[string]any)
	ordinals, _ := spec["ordinals"].(map[string]any)
	if start := ordinals["start"]; start != nil {
		return fmt.Sprint(start)
	}
	return "0"
}
