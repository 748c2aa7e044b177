// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
)

// checkMounts rejects a finished pod in which a sidecar's container mounts a missing volume. Only the finished pod
// can be checked: a sidecar may mount what a later one adds. If a webhook for pods, or a controller other than
// Kubernetes' own, may still add the volume, it is a warning.
func (a *attempt) checkMounts(pod map[string]any) error {
	known := knownVolumes(a.of.obj, a.original, pod)
	containers := containersByName(pod)
	for _, r := range a.records {
		for _, name := range slices.Concat(r.InitContainers, r.Containers) {
			for _, m := range podmap.Maps(containers[name]["volumeMounts"]) {
				volume, _ := m["name"].(string)
				if volume == "" || slices.Contains(known, volume) {
					continue
				}
				err := fmt.Errorf("the container %s of the sidecar %s mounts the volume %s at %v, and the pod has no such volume; "+
					"add it to the pod's volumes, or let the sidecar mount one that is there", name, r.Name, volume, m["mountPath"])
				if a.of.refusesMounts() {
					return &podmap.FieldError{Field: "spec.volumes", Err: err}
				}
				a.add(result.Warning, "spec.volumes", err.Error()+", unless a webhook or controller adds it")
			}
		}
	}
	return nil
}

// knownVolumes returns the names of the volumes of the pod, of the workload's claims, and of what the app itself
// mounts: the latter exist, wherever they come from, or the app does not run without the sidecar either.
func knownVolumes(obj, original, pod map[string]any) []string {
	known := append(volumeNames(pod), volumeClaimNames(obj)...)
	for _, c := range containersByName(original) {
		for _, m := range podmap.Maps(c["volumeMounts"]) {
			if name, _ := m["name"].(string); name != "" {
				known = append(known, name)
			}
		}
	}
	return known
}

// refusesMounts reports whether the API server surely refuses the workload for a mount without a volume. It looks at the pod templates
// of its own kinds before any webhook for pods does, but not at a StatefulSet's.
func (w *podInjection) refusesMounts() bool {
	return isBuiltIn(w.unit.meta) && !w.isBarePod() && w.unit.meta.Kind != "StatefulSet"
}
