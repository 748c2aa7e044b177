// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/podmap"
)

// Leftovers names what the sidecar may have left in a pod that it was taken out of. The record goes by the names of containers: of one that
// was renamed since, or copied and then deleted, it tells nothing. Where the pod does not have a container that the sidecar changed, and
// another one has the same fields, nothing tells whose they are.
func (r Record) Leftovers(pod map[string]any) []Warning {
	spec, _ := r.Patch["spec"].(map[string]any)
	var gone []map[string]any
	known := map[any]bool{}
	for _, key := range []string{initContainersKey, containersKey} {
		for _, patch := range mapsOf(spec[key]) {
			known[patch["name"]] = true
			if patch["$patch"] == nil && !hasContainer(pod, patch["name"]) {
				gone = append(gone, patch)
			}
		}
	}
	var out []Warning
	for _, key := range []string{initContainersKey, containersKey} {
		for _, c := range listOf(pod, key) {
			if known[c["name"]] {
				continue
			}
			for _, patch := range gone {
				for _, field := range alike(patch, c) {
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

// alike returns the fields of a container that a patch of another one would change. Mounts are not among them: see DropMounts.
func alike(patch, c map[string]any) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(patch)) {
		f := podmap.ContainerSchema().Field(key)
		if f == nil || key == "name" || key == mountsKey {
			continue
		}
		if !f.Merges || f.MergeKey == "" {
			if _, there := c[key]; there {
				out = append(out, key)
			}
			continue
		}
		have, _ := c[key].([]any)
		for _, e := range mapsOf(patch[key]) {
			if id := e[f.MergeKey]; id != nil && podmap.FindBy(have, f.MergeKey, id) != nil {
				out = append(out, fmt.Sprintf("%s[%v]", key, id))
			}
		}
	}
	return out
}

// mountsKey is the list of a container's mounts.
const mountsKey = "volumeMounts"

// DropMounts returns a pod without the mounts of volumes that went with their sidecars, and says which these were: a container that was
// renamed, copied or added since has them still, and the API server refuses a mount without its volume. The pod is not changed.
func DropMounts(pod map[string]any, volumes []string) (map[string]any, []Warning) {
	var dropped []Warning
	for _, key := range []string{initContainersKey, containersKey} {
		for at, c := range listOf(pod, key) {
			for _, m := range mapsOf(c[mountsKey]) {
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

// dropMount takes a mount out of a container, with the list if it was the only one.
func dropMount(c, mount map[string]any) {
	list, _ := c[mountsKey].([]any)
	list = slices.DeleteFunc(list, func(e any) bool { return podmap.Equal(e, mount) })
	if c[mountsKey] = list; len(list) == 0 {
		delete(c, mountsKey)
	}
}
