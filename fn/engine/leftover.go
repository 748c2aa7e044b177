// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/sidecar"
)

// dropMounts removes mounts from the original whose volumes were removed with their sidecars and are not in the
// resulting pod. A mount of a volume that comes back stays, as any other edit does. It reports whether it removed
// any. obj is the workload.
func (r *restoredPod) dropMounts(original, becomes, obj map[string]any) (map[string]any, bool) {
	var lost []string
	spec, _ := becomes["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	has := append(podmap.Names(volumes), volumeClaimNames(obj)...)
	for _, record := range r.sidecars {
		for _, name := range record.Volumes {
			if !slices.Contains(has, name) {
				lost = append(lost, name)
			}
		}
	}
	if len(lost) > 0 {
		original, r.dropped = sidecar.DropMounts(original, lost)
	}
	return original, len(r.dropped) > 0
}

// volumeClaimNames returns the names of the volumes that a StatefulSet's pods have of its claims.
func volumeClaimNames(workload map[string]any) []string {
	spec, _ := workload["spec"].(map[string]any)
	var out []string
	for _, claim := range podmap.Maps(spec["volumeClaimTemplates"]) {
		meta, _ := claim["metadata"].(map[string]any)
		if name, _ := meta["name"].(string); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// reportLeftovers names what sidecars that were taken out may have left in the pod, and what went with them.
func (r *restoredPod) reportLeftovers(report *podReport, pod, original map[string]any) {
	notes := r.dropped
	for _, record := range r.sidecars {
		notes = append(notes, record.Leftovers(pod, original)...)
	}
	for _, n := range notes {
		report.add(result.Warning, n.Field, "taking an earlier injection out: "+n.Message)
	}
}
