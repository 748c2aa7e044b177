// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"strings"
)

// droppedFields are fields of features that are off by default in a version of Kubernetes up to 1.37. The API
// server drops them silently, like fields that are newer than itself, so the pod does not reveal why they are
// missing.
var droppedFields = []string{
	"stopSignal", "fileKeyRef", "restartPolicyRules", "hostnameOverride", "clusterTrustBundle", "podCertificate", "bindMountOptions",
	"schedulingGroup", "evictionResponders",
}

// newerFeatures is the minor version of Kubernetes since which volumes that are images, and restart policies of containers, are on
// by default. Older ones drop them, and the mounts of such volumes.
const newerFeatures = 35

// droppedByOlder allows the volume of an image, its mount, or a container's restart policy to be missing in an older version.
func (p *compared) droppedByOlder(c change) bool {
	if !p.v.snapshot.olderThan(newerFeatures) || c.found != nil {
		return false
	}
	switch c.placeWithoutIdentities() {
	case "spec.containers.restartPolicy":
		return !c.path[len(c.path)-1].element
	case "spec.volumes", "spec.containers.volumeMounts", "spec.initContainers.volumeMounts":
	default:
		return false // another thing of the same name
	}
	missing, _ := c.want.(map[string]any)
	return slices.ContainsFunc(mapsAtPath(p.want, "spec", "volumes"), func(volume map[string]any) bool {
		return volume["image"] != nil && volume["name"] == missing["name"]
	})
}

// droppedFeature reports whether a change is that the API server has dropped such fields.
func droppedFeature(place string, c change) bool {
	if c.want == nil || c.order {
		return false
	}
	if last := c.path[len(c.path)-1]; c.found == nil && !last.element && slices.Contains(droppedFields, last.key) {
		return true
	}
	if !strings.HasSuffix(place, ".lifecycle") && !strings.HasSuffix(place, ".projected.sources") && !strings.HasSuffix(place, ".valueFrom") {
		return false
	}
	left, dropped := withoutDropped(c.want)
	if !dropped {
		return false
	}
	if m, ok := left.(map[string]any); ok && len(m) == 0 && c.found == nil {
		return true
	}
	return sameJSON(left, c.found)
}

// withoutDropped returns a value without such fields, and whether it had some.
func withoutDropped(v any) (out any, dropped bool) {
	switch v := v.(type) {
	case map[string]any:
		left := make(map[string]any, len(v))
		for key, value := range v {
			if slices.Contains(droppedFields, key) {
				dropped = true
				continue
			}
			one, had := withoutDropped(value)
			left[key], dropped = one, dropped || had
		}
		return left, dropped
	case []any:
		left := make([]any, len(v))
		for i, value := range v {
			one, had := withoutDropped(value)
			left[i], dropped = one, dropped || had
		}
		return left, dropped
	}
	return v, false
}
