// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"slices"
)

// resizeSubresource is the subresource of pods through which the resources of running containers change.
const resizeSubresource = "resize"

// vpaAnnotation is the annotation that the vertical pod autoscaler sets on a pod after it has resized it (source:
// pkg/utils/annotations of its module in kubernetes/autoscaler, VpaInPlaceUpdatedLabel).
const vpaAnnotation = "vpaInPlaceUpdated"

// resizes returns the managers that have resized a pod in place. An entry without a time, or with one before the pod
// was created, is of another pod.
func resizes(pod map[string]any) []manager {
	return slices.DeleteFunc(managersByTime(pod), func(m manager) bool {
		return m.subresource != resizeSubresource || m.time.IsZero() || m.time.Before(creationTime(pod))
	})
}

// resizeOf returns the manager that has made a change by resizing the pod in place, the last one of several, or nil if
// managedFields do not prove it of each value.
func resizeOf(pod map[string]any, c change) *manager {
	fields := resizableFields(c)
	if len(fields) == 0 {
		return nil
	}
	entries := resizes(pod)
	var last *manager
	for _, field := range fields {
		at := slices.IndexFunc(entries, func(m manager) bool { return m.sets(field) })
		if at < 0 {
			return nil
		}
		if last == nil || entries[at].time.After(last.time) {
			last = &entries[at]
		}
	}
	return last
}

// resizableFields returns the paths of the values that a change has added or replaced, or nil unless a resize can do
// that: it sets cpu and memory of containers and pods, and never removes a value (source: ValidatePodResize in
// pkg/apis/core/validation of k8s.io/kubernetes v1.36.3).
func resizableFields(c change) [][]step {
	inPod := len(c.path) >= 2 && c.path[0].key == "spec" && c.path[1].key == "resources"
	inContainer := len(c.path) >= 4 && (c.path[1].key == "containers" || c.path[1].key == "initContainers") &&
		c.path[2].element && c.path[3].key == "resources"
	if c.found == nil || c.order || !inPod && !inContainer {
		return nil
	}
	depth := 2
	if inContainer {
		depth = 4
	}
	fields := leaves(c.path, c.found)
	for _, field := range fields {
		rest := field[depth:]
		if len(rest) != 2 || rest[0].key != "requests" && rest[0].key != "limits" {
			return nil
		}
		if resource := rest[1].key; resource != "cpu" && resource != "memory" {
			return nil
		}
	}
	return fields
}

// leaves returns the paths of the values in a value that are no maps.
func leaves(path []step, value any) [][]step {
	fields, ok := value.(map[string]any)
	if !ok {
		return [][]step{slices.Clone(path)}
	}
	var out [][]step
	for key, v := range fields {
		out = append(out, leaves(append(slices.Clone(path), step{key: key}), v)...)
	}
	return out
}

// splitResized splits changes into those that a resize in place has made and all others.
func splitResized(pod map[string]any, changes []change) (resized, others []change) {
	for _, c := range changes {
		if resizeOf(pod, c) != nil {
			resized = append(resized, c)
			continue
		}
		others = append(others, c)
	}
	marked := func(c change) bool {
		return c.want == nil && c.found == "true" && c.placeWithoutIdentities() == "metadata.annotations."+vpaAnnotation
	}
	if at := slices.IndexFunc(others, marked); at >= 0 && len(resizes(pod)) > 0 {
		resized = append(resized, others[at])
		others = slices.Delete(others, at, at+1)
	}
	return resized, others
}

// maybeResized returns what may explain the changes of a pod that was saved without managedFields, or "".
func maybeResized(pod map[string]any, changes []change) string {
	if len(changes) == 0 || len(managersByTime(pod)) > 0 {
		return ""
	}
	for _, c := range changes {
		if len(resizableFields(c)) == 0 {
			return ""
		}
	}
	return "only cpu and memory differ, as after a resize in place; managedFields would prove one, " +
		"so save the pods with --show-managed-fields"
}

// ownerDiffers describes how the template of a resized pod's owner differs from the commit.
func (m *matching) ownerDiffers(changes []change) string {
	if len(changes) == 0 {
		return ""
	}
	first := changes[0].redactCredentials()
	return fmt.Sprintf("the template of its owner differs as well, in %s: %s", first.fieldPathWithIdentities(), summarizeChange(first))
}
