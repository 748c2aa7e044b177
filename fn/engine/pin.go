// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/pin"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
)

// Pinning a workload's own images is separate from injection: the digests are removed from the pod before anything
// reads it, and written after all other work is done. So no digest of ours affects what depends on an image or what
// is recorded of the original.

// pinnedKey is the key of the workload's record under which the images are that its own containers had before they were pinned. It is no
// path, which the other keys are.
const pinnedKey = "(images)"

// pinnedImages are the images before they were pinned, by the path of the pod template and the name of the container.
type pinnedImages map[string]map[string]pin.Original

// pinOwn pins the images of a pod's own containers, where a policy wants that. original is the pod before any injection.
func (in *Injector) pinOwn(u *documentUnit, t workload.Template, original, pod map[string]any, plans []*compiledPolicy) map[string]any {
	if in.mode == v1alpha1.ModeRemove {
		return pod
	}
	var own []string
	for _, pl := range plans {
		images := pl.policy.Spec.Images
		if images == nil || images.Scope != v1alpha1.ScopeAll {
			continue
		}
		if own == nil {
			own = pin.Own(original, pod)
		}
		var missing result.Results
		pod, missing = pin.Apply(pod, own, pl.lock, pin.OnMissing(images.OnMissing))
		report := podReport{unit: u, field: t.Field}
		report.addAll(missing)
		u.results = append(u.results, report.results...)
	}
	return pod
}

// removePinnedDigests removes the digests that an earlier run has written from a pod's own images. A removal reports
// it.
func (in *Injector) removePinnedDigests(t *workload.Template, pinned pinnedImages) (restored bool) {
	t.Pod, restored = pin.Restore(t.Pod, pinned[t.Field])
	return restored && in.mode == v1alpha1.ModeRemove
}

// reportUnpinned reports that digests were removed from the pod processed last.
func (u *documentUnit) reportUnpinned(field string) {
	const message = "the digests of its own images were taken out"
	if o := &u.outcomes[len(u.outcomes)-1]; o.Action == Skipped {
		o.Action, o.Reason = Removed, message
	}
	u.addResult(result.Info, field, message)
}
