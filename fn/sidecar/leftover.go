// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/podmap"
)

// Leftovers lists what the sidecar may have left in a pod after its removal. The record identifies containers by
// name: it has no information about one that was renamed since, or copied and then deleted. If the input pod lacks
// a container that the sidecar changed, and another one has the same fields, their origin is unknown. Only the
// input pod shows that a container was removed: left never has the containers of Istio and of other sidecars, and
// the sidecar may have changed one of these.
func (r Record) Leftovers(came, left map[string]any) []Warning {
	spec, _ := r.Patch["spec"].(map[string]any)
	var gone []map[string]any
	known := map[any]bool{}
	for _, key := range []string{initContainersKey, containersKey} {
		for _, patch := range podmap.Maps(spec[key]) {
			known[patch["name"]] = true
			if patch["$patch"] == nil && !hasContainer(came, patch["name"]) {
				gone = append(gone, patch)
			}
		}
	}
	var out []Warning
	for _, key := range []string{initContainersKey, containersKey} {
		for _, c := range listOf(left, key) {
			if known[c["name"]] {
				continue
			}
			for _, patch := range gone {
				for _, field := range fieldsPatchWouldChange(patch, c) {
					out = append(out, Warning{Field: fmt.Sprintf("spec.%s[%v].%s", key, c["name"], field),
						Message: fmt.Sprintf("the sidecar %s had set this in the container %v, which the pod does not have any more; it stays, because it may be the pod's own; "+
							"take it out if the container was renamed or copied", r.Name, patch["name"])})
				}
			}
		}
	}
	return out
}

func hasContainer(pod map[string]any, name any) bool {
	return indexOf(listOf(pod, initContainersKey), name) >= 0 || indexOf(listOf(pod, containersKey), name) >= 0
}

// fieldsPatchWouldChange returns the fields of a container that a patch of another one would change. Mounts are not
// among them: see DropMounts.
func fieldsPatchWouldChange(patch, c map[string]any) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(patch)) {
		f := podmap.ContainerSchema().Field(key)
		if f == nil || key == "name" || key == mountsKey {
			continue
		}
		if !f.Merges || f.MergeKey == "" {
			if value, there := c[key]; there && removalChangesValue(patch[key], value) {
				out = append(out, key)
			}
			continue
		}
		have, _ := c[key].([]any)
		for _, e := range podmap.Maps(patch[key]) {
			id := e[f.MergeKey]
			if id == nil {
				continue
			}
			if found := podmap.FindBy(have, f.MergeKey, id); found != nil && removalChangesValue(e, found) {
				out = append(out, fmt.Sprintf("%s[%v]", key, id))
			}
		}
	}
	return out
}

// removalChangesValue reports whether removing a sidecar by a part of its record would change an existing value. The
// record's values are from before the sidecar: a field that has this value is not the sidecar's.
func removalChangesValue(patch, value any) bool {
	p, isMap := patch.(map[string]any)
	have, ok := value.(map[string]any)
	if !isMap || !ok || p["$patch"] != nil {
		return !podmap.Equal(patch, value)
	}
	for key, e := range p {
		if v, there := have[key]; there && removalChangesValue(e, v) {
			return true
		}
	}
	return false
}

// mountsKey is the list of a container's mounts.
const mountsKey = "volumeMounts"

// DropMounts returns a pod without the mounts of volumes that were removed with their sidecars, and reports which
// these were: a container that was renamed, copied or added since still has them, and the API server rejects a
// mount without its volume. It does not modify the pod.
func DropMounts(pod map[string]any, volumes []string) (map[string]any, []Warning) {
	var dropped []Warning
	for _, key := range []string{initContainersKey, containersKey} {
		for at, c := range listOf(pod, key) {
			for _, m := range podmap.Maps(c[mountsKey]) {
				if name, _ := m["name"].(string); name == "" || !slices.Contains(volumes, name) {
					continue
				}
				if len(dropped) == 0 {
					pod = podmap.CopyMap(pod)
				}
				dropMount(listOf(pod, key)[at], m)
				dropped = append(dropped, Warning{Field: fmt.Sprintf("spec.%s[%v].%s[%v]", key, c["name"], mountsKey, m["mountPath"]),
					Message: fmt.Sprintf("this was taken out, because the volume %v went with its sidecar", m["name"])})
			}
		}
	}
	return pod, dropped
}

// dropMount removes a mount from a container, and the list if it was the only one.
func dropMount(c, mount map[string]any) {
	list, _ := c[mountsKey].([]any)
	list = slices.DeleteFunc(list, func(e any) bool { return podmap.Equal(e, mount) })
	c[mountsKey] = list
	if len(list) == 0 {
		delete(c, mountsKey)
	}
}
