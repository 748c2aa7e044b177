// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pin

import "strings"

// Images returns the images of a pod's containers by the containers' names; those without a name or an image are left out.
func Images(pod map[string]any) map[string]string {
	out := map[string]string{}
	forEachContainer(pod, func(name, image string) { out[name] = image })
	return out
}

// forEachContainer calls do for every container that has a name and an image.
func forEachContainer(pod map[string]any, do func(name, image string)) {
	spec, _ := pod["spec"].(map[string]any)
	for _, key := range containerLists {
		list, _ := spec[key].([]any)
		for _, item := range list {
			c, _ := item.(map[string]any)
			name, _ := c["name"].(string)
			if image, _ := c["image"].(string); name != "" && image != "" {
				do(name, image)
			}
		}
	}
}

// Own names the containers that the pod has with the image that they have in the original, in the order of the pod: those that no
// injection has added or changed.
func Own(original, pod map[string]any) []string {
	before := Images(original)
	var names []string
	forEachContainer(pod, func(name, image string) {
		if before[name] == image {
			names = append(names, name)
		}
	})
	return names
}

// Original is the image that a container had before it was pinned. Pinned is what it was pinned to where that is more than the
// image with a digest behind it: a mirror, by the pins of a policy.
type Original struct {
	Image  string `json:"image"`
	Pinned string `json:"pinned,omitempty"`
}

// Originals returns what Restore needs to take the change from one pod to the other back, by the names of the containers; nil where
// no image has changed.
func Originals(before, after map[string]any) map[string]Original {
	had := Images(before)
	var out map[string]Original
	forEachContainer(after, func(name, image string) {
		was, ok := had[name]
		if !ok || was == image {
			return
		}
		o := Original{Image: was}
		if withoutDigest(image) != was {
			o.Pinned = image
		}
		if out == nil {
			out = map[string]Original{}
		}
		out[name] = o
	})
	return out
}

// Restore returns the pod with the images that it had before it was pinned. An image that was changed since, to
// another tag or name, stays; another digest behind the same tag does not, as the lock determines which one it is.
// restored reports whether it restored any. It does not modify the pod.
func Restore(pod map[string]any, originals map[string]Original) (original map[string]any, restored bool) {
	if len(originals) == 0 {
		return pod, false
	}
	spec, _ := pod["spec"].(map[string]any)
	changed := map[string]any{}
	for _, key := range containerLists {
		list, _ := spec[key].([]any)
		var out []any
		for i, item := range list {
			c, _ := item.(map[string]any)
			name, _ := c["name"].(string)
			image, _ := c["image"].(string)
			o, ok := originals[name]
			if !ok || digestOf(image) == "" || image != o.Pinned && (o.Pinned != "" || withoutDigest(image) != o.Image) {
				continue
			}
			if out == nil {
				out = append(out, list...)
			}
			out[i] = withKey(c, "image", o.Image)
		}
		if out != nil {
			changed[key] = out
		}
	}
	if len(changed) == 0 {
		return pod, false
	}
	return withKey(pod, "spec", withAll(spec, changed)), true
}

// withoutDigest returns an image without the digest behind it.
func withoutDigest(image string) string {
	name, _, _ := strings.Cut(image, "@")
	return name
}

// Tag returns the image without the digest behind its tag; ok is false where it has no digest, or none behind a tag.
func Tag(image string) (tagged string, ok bool) {
	tagged = withoutDigest(image)
	return tagged, tagged != image && strings.Contains(tagged[strings.LastIndex(tagged, "/")+1:], ":")
}
