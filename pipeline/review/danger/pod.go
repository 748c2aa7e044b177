// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package danger

import (
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// podOf returns the pod spec of a workload, or nil.
func podOf(object map[string]any) map[string]any {
	for _, path := range [][]string{{"spec", "jobTemplate", "spec", "template", "spec"}, {"spec", "template", "spec"}, {"spec"}} {
		pod, _ := podmap.ValueAt(object, path...).(map[string]any)
		if _, ok := pod["containers"].([]any); ok {
			return pod
		}
	}
	return nil
}

// container is what matters of one.
type container struct {
	name, image string
	rights      []string
}

// safeCapabilities are those that containers have without asking for them in common runtimes, or that give none over the node.
var safeCapabilities = []string{"NET_BIND_SERVICE", "CHOWN", "FOWNER", "SETGID", "SETUID", "DAC_OVERRIDE", "KILL",
	"SETPCAP", "AUDIT_WRITE", "MKNOD", "SETFCAP", "FSETID", "SYS_CHROOT", "NET_RAW"}

// networkInits are init containers of meshes, which redirect the traffic of the pod by NET_ADMIN.
var networkInits = []string{"istio-init", "linkerd-init"}

// containersOf returns the containers of a pod, init containers too.
func containersOf(pod map[string]any) (out []container) {
	for _, field := range []string{"initContainers", "containers"} {
		for _, one := range list(pod, field) {
			value, _ := one.(map[string]any)
			c := container{name: podmap.TextAt(value, "name"), image: podmap.TextAt(value, "image")}
			if podmap.ValueAt(value, "securityContext", "privileged") == true {
				c.rights = append(c.rights, "runs privileged")
			}
			for _, name := range list(value, "securityContext", "capabilities", "add") {
				capability, _ := name.(string)
				capability = strings.TrimPrefix(capability, "CAP_")
				redirects := capability == "NET_ADMIN" && slices.Contains(networkInits, c.name)
				if capability != "" && !redirects && !slices.Contains(safeCapabilities, capability) {
					c.rights = append(c.rights, "adds the capability "+capability)
				}
			}
			out = append(out, c)
		}
	}
	return out
}

// podRights finds rights over the node that pods get.
func (c *change) podRights() {
	old, now := podOf(c.before), podOf(c.after)
	if now == nil {
		return
	}
	for _, field := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if podmap.ValueAt(now, field) == true && podmap.ValueAt(old, field) != true {
			c.add("%s: true shares the node's own", field)
		}
	}
	before := hostPaths(old)
	for _, path := range hostPaths(now) {
		if !slices.Contains(before, path) {
			c.add("mounts the node's directory %s (hostPath)", path)
		}
	}
	had := map[string][]string{}
	for _, one := range containersOf(old) {
		had[one.name] = one.rights
	}
	for _, one := range containersOf(now) {
		for _, right := range one.rights {
			if !slices.Contains(had[one.name], right) {
				c.add("the container %s %s", one.name, right)
			}
		}
	}
}

func hostPaths(pod map[string]any) (out []string) {
	for _, one := range list(pod, "volumes") {
		volume, _ := one.(map[string]any)
		if path := podmap.TextAt(volume, "hostPath", "path"); path != "" {
			out = append(out, path)
		}
	}
	return out
}

// podVersions finds images whose major version differs.
func (c *change) podVersions() {
	images := map[string]string{}
	for _, one := range containersOf(podOf(c.before)) {
		images[one.name] = one.image
	}
	for _, one := range containersOf(podOf(c.after)) {
		old, now := images[one.name], one.image
		oldName, oldTag := splitImage(old)
		name, tag := splitImage(now)
		before, ok := major(oldTag)
		after, okNow := major(tag)
		if ok && okNow && before != after && oldName == name {
			c.add("another major version of %s: %s in the place of %s", name, tag, oldTag)
		}
	}
}

// splitImage returns the name and the tag of an image.
func splitImage(image string) (name, tag string) {
	image, _, _ = strings.Cut(image, "@")
	slash := strings.LastIndexByte(image, '/')
	colon := strings.LastIndexByte(image, ':')
	if colon <= slash {
		return image, ""
	}
	return image[:colon], image[colon+1:]
}

// version matches tags that begin with a version; the major version alone, as of postgres:16, is one too.
var version = lazyregexp.New(`^v?([0-9]+)(\.[0-9]+)*([-+_.].*)?$`)

// largestMajor separates versions from dates such as 20240131 and years.
const largestMajor = 1000

// major returns the major version of a tag.
func major(tag string) (n int, ok bool) {
	parts := version.FindStringSubmatch(tag)
	if parts == nil {
		return 0, false
	}
	n, err := strconv.Atoi(parts[1])
	return n, err == nil && n < largestMajor
}
