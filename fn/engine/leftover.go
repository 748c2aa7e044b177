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
// any.
func (w *podInjection) dropMounts(becomes map[string]any) bool {
	var gone []string
	spec, _ := becomes["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	has := append(podmap.Names(volumes), volumeClaimNames(w.obj)...)
	for _, r := range w.restored.sidecars {
		for _, name := range r.Volumes {
			if !slices.Contains(has, name) {
				gone = append(gone, name)
			}
		}
	}
	if len(gone) == 0 {
		return false
	}
	w.original, w.restored.dropped = sidecar.DropMounts(w.original, gone)
	return len(w.restored.dropped) > 0
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
func (w *podInjection) reportLeftovers() {
	notes := w.restored.dropped
	for _, r := range w.restored.sidecars {
		notes = append(notes, r.Leftovers(w.template.Pod, w.original)...)
	}
	for _, n := range notes {
		w.unit.addResult(result.Warning, joinField(w.template.Field, n.Field), "taking an earlier injection out: "+n.Message)
	}
}
