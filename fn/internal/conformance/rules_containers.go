// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import "slices"

// specListMaps returns the maps of a list of a pod's spec.
func specListMaps(pod map[string]any, key string) []map[string]any {
	spec, _ := pod["spec"].(map[string]any)
	return mapsOf(spec[key])
}

func mapsOf(v any) []map[string]any {
	list, _ := v.([]any)
	out := make([]map[string]any, 0, len(list))
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// indexOf is where an element has a value at a key, or -1.
func indexOf(list []map[string]any, key, value string) int {
	return slices.IndexFunc(list, func(m map[string]any) bool { return m[key] == value })
}

// dropFromProxy removes elements from a list of istio-proxy that the other pod's proxy does not have; key is the
// field that identifies them.
func (r webhookRule) dropFromProxy(pod, other map[string]any, key string) bool {
	ours, theirs := specListMaps(pod, "containers"), specListMaps(other, "containers")
	i, j := indexOf(ours, "name", "istio-proxy"), indexOf(theirs, "name", "istio-proxy")
	if i < 0 || j < 0 {
		return false
	}
	wanted, removed := mapsOf(theirs[j][r.part]), false
	for _, name := range r.names {
		list, _ := ours[i][r.part].([]any)
		at := indexOf(mapsOf(ours[i][r.part]), key, name)
		if at >= 0 && indexOf(wanted, key, name) < 0 {
			ours[i][r.part] = slices.Delete(slices.Clone(list), at, at+1)
			removed = true
		}
	}
	return removed
}

// moveAsThere moves an init container to the end, where the other pod has it.
func (r webhookRule) moveAsThere(pod, other map[string]any) bool {
	ours, theirs := specListMaps(pod, "initContainers"), specListMaps(other, "initContainers")
	moved := false
	for _, name := range r.names {
		i, j := indexOf(ours, "name", name), indexOf(theirs, "name", name)
		if i < 0 || j != len(theirs)-1 || i == len(ours)-1 {
			continue
		}
		spec, _ := pod["spec"].(map[string]any)
		list, _ := spec["initContainers"].([]any)
		c := list[i]
		spec["initContainers"] = append(slices.Delete(slices.Clone(list), i, i+1), c)
		moved = true
	}
	return moved
}
