// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/fn/podmap"
)

// CauseKind describes how a field got its value.
type CauseKind string

// The kinds of causes.
const (
	// CauseWorkload is that the workload in the cluster has another template than the committed one.
	CauseWorkload CauseKind = "Workload"
	// CauseAdmission is that it was changed when the pod was created: by a webhook, or a mutating admission policy.
	CauseAdmission CauseKind = "Admission"
	// CauseUpdate means that the pod was changed after it was created.
	CauseUpdate CauseKind = "Update"
	// CauseResize means that the resources of the running pod were changed, through its subresource resize.
	CauseResize CauseKind = "Resize"
	// CauseUnknown is one of the others: the objects do not reveal which.
	CauseUnknown CauseKind = "Unknown"
)

// CauseKinds are all kinds of causes.
var CauseKinds = []CauseKind{CauseWorkload, CauseAdmission, CauseUpdate, CauseResize, CauseUnknown}

// Cause is who changed a field of a pod.
type Cause struct {
	Kind CauseKind `json:"kind"`
	// By names webhooks as CONFIGURATION/WEBHOOK, or managers as managedFields has them.
	By []string `json:"by,omitempty"`
	// Certain reports whether the objects or the audit log prove it. Otherwise By lists those that could have done
	// it.
	Certain bool `json:"certain"`
	// Time is when the manager last wrote, where that is known.
	Time time.Time `json:"time,omitzero"`
}

// String describes it in words.
func (c Cause) String() string {
	by := strings.Join(c.By, ", ")
	switch {
	case c.Kind == CauseWorkload && by != "":
		return "the workload in the cluster was changed by " + by + c.timeSuffix()
	case c.Kind == CauseWorkload:
		return "the workload in the cluster has another template"
	case c.Kind == CauseUpdate:
		return "changed after the pod was created, by " + by + c.timeSuffix()
	case c.Kind == CauseResize:
		return "resized in place by " + by + c.timeSuffix()
	case c.Kind == CauseAdmission && by == "":
		return "changed at admission; no webhook of the cluster is known to do it"
	case c.Kind == CauseAdmission && c.Certain:
		return "changed at admission by " + by
	case c.Kind == CauseAdmission && len(c.By) == 1:
		return "changed at admission, by " + by + " which alone matches the pod"
	case c.Kind == CauseAdmission:
		return "changed at admission by one of " + by
	case by != "":
		return "changed at admission or later; " + by + " saw the pod"
	}
	return "changed at admission or later"
}

func (c Cause) timeSuffix() string {
	if c.Time.IsZero() {
		return ""
	}
	return " at " + c.Time.UTC().Format(time.RFC3339)
}

// findCause determines who made a change. inTemplate reports whether the owner's own template has it.
func (v *verifier) findCause(p *compared, c change, inTemplate bool) Cause {
	if inTemplate {
		return v.workloadCause(p, c)
	}
	if m := resizeOf(p.pod, c); m != nil {
		return Cause{Kind: CauseResize, By: []string{m.name}, Certain: true, Time: m.time}
	}
	entries := managersByTime(p.pod)
	first := creatingManagerEntry(entries, p.pod)
	for i, m := range entries {
		if m.subresource == resizeSubresource {
			continue // it has set other values
		}
		// Without the creator, only what has a subresource of its own is known to have come later.
		isLater := m.subresource != "" || first != nil && first != &entries[i]
		if c.found != nil && isLater && m.ownsFieldAt(c.path) && (first == nil || !first.ownsFieldAt(c.path)) {
			return Cause{Kind: CauseUpdate, By: []string{m.name}, Certain: true, Time: m.time}
		}
	}
	if done, ok := v.audit.webhooksThatChanged(p.pod, c); ok {
		return Cause{Kind: CauseAdmission, By: done, Certain: true}
	}
	webhooks := v.webhooksOf(p)
	if first == nil || c.found == nil && wroteAfterCreation(entries, first, c.path) {
		return Cause{Kind: CauseUnknown, By: webhooks}
	}
	return Cause{Kind: CauseAdmission, By: webhooks}
}

// wroteAfterCreation reports whether a manager that could change the field at a path wrote to an object after it was
// created. A writer of a subresource can change its fields, and the metadata: write access to pods/status includes
// labels and annotations.
func wroteAfterCreation(entries []manager, first *manager, path []step) bool {
	inMetadata := path[0].key == "metadata"
	for i, m := range entries {
		if (m.subresource == "" || inMetadata && m.fields["f:metadata"] != nil) && first != &entries[i] {
			return true
		}
	}
	return false
}

// workloadCause returns who changed the template of a workload, by the managers of the top-level object. The
// managers of a ReplicaSet or a Job whose own controller was not read do not reveal that: that controller copied
// the template, regardless of who changed it.
func (v *verifier) workloadCause(p *compared, c change) Cause {
	cause := Cause{Kind: CauseWorkload}
	top := p.origin.top
	prefix, ok := map[string][]string{
		"Deployment": {"spec", "template"}, "StatefulSet": {"spec", "template"}, "DaemonSet": {"spec", "template"}, "ReplicaSet": {"spec", "template"},
		"Rollout": {"spec", "template"}, "Job": {"spec", "template"}, "ReplicationController": {"spec", "template"},
		"CronJob": {"spec", "jobTemplate", "spec", "template"},
	}[podmap.TextAt(top, "kind")]
	copied := controllerRef(top) != nil && !p.version.Ref.canBeNamedBy(refOf(top))
	if !ok || c.found == nil || copied {
		return cause
	}
	var path []step
	for _, key := range prefix {
		path = append(path, step{key: key})
	}
	path = append(path, c.path...)
	entries := managersByTime(top)
	slices.Reverse(entries)
	for _, m := range entries {
		if m.subresource == "" && m.ownsFieldAt(path) {
			cause.By, cause.Time, cause.Certain = []string{m.name}, m.time, true
			return cause
		}
	}
	return cause
}

// summarizeChange briefly describes how a value differs.
func summarizeChange(c change) string {
	switch {
	case c.order:
		return fmt.Sprintf("order is %v, committed %v", c.found, c.want)
	case c.want == nil:
		return "added: " + shortSingleLine(c.found)
	case c.found == nil:
		return "missing: " + shortSingleLine(c.want)
	}
	return shortSingleLine(c.found) + ", committed " + shortSingleLine(c.want)
}
