// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package pin writes previously resolved digests into the images of containers. It changes only the field image of
// the named containers, and contacts no registry.
package pin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/result"
)

// Code is the code of a result about an image that has no digest.
const Code = "image-not-locked"

// OnMissing is what to do with an image that is not locked: the values of spec.images.onMissing.
type OnMissing string

// What to do with an image that is not locked.
const (
	Ignore OnMissing = "Ignore"
	Warn   OnMissing = "Warn"
	Fail   OnMissing = "Fail"
)

// Lock finds the digest of an image. It is immutable; the nil Lock knows none.
type Lock struct {
	pinned map[string]string // by the image in full, the image with its digest
}

// NewLock combines a policy's own pins and image locks. The policy's take precedence. Two locks with different
// digests for an image are an error, as one of them would be used by accident.
func NewLock(pins map[string]string, locks ...*v1alpha1.ImageLock) (*Lock, error) {
	l := &Lock{pinned: map[string]string{}}
	from := map[string]string{}
	for _, lock := range locks {
		for _, locked := range lock.Spec.Images {
			name := fullName(locked.Image)
			pinned := locked.Image + "@" + locked.Digest
			if other, ok := l.pinned[name]; ok && digestOf(other) != locked.Digest {
				return nil, fmt.Errorf("reading image locks: %s is locked to %s by %s and to %s by %s",
					locked.Image, digestOf(other), from[name], locked.Digest, lock.Metadata.Name)
			}
			l.pinned[name], from[name] = pinned, lock.Metadata.Name
		}
	}
	for image, pinned := range pins {
		l.pinned[fullName(image)] = pinned
	}
	return l, nil
}

// Find returns the image with its digest. An image that already has one is returned unchanged.
func (l *Lock) Find(image string) (pinned string, ok bool) {
	if digestOf(image) != "" {
		return image, true
	}
	if l == nil {
		return "", false
	}
	locked, ok := l.pinned[fullName(image)]
	if !ok {
		return "", false
	}
	// The image keeps the name that the template gave it: docker.io/istio/proxyv2 and istio/proxyv2 are one image, and a
	// reader of the diff should see the digest only. A pin of the policy may name another registry, a mirror.
	if name, digest := locked[:strings.Index(locked, "@")], digestOf(locked); fullName(name) == fullName(image) {
		return image + "@" + digest, true
	}
	return locked, true
}

// Relock returns the pod with the images of all containers that the lock has pinned to its digests, including those
// that have another digest behind the tag. Missing ones are reported as in Apply; an image with a digest that is
// not in the lock stays and is not missing.
func Relock(pod map[string]any, lock *Lock, missing OnMissing) (map[string]any, result.Results) {
	bare := map[string]Original{}
	var names []string
	forEachContainer(pod, func(name, image string) {
		names = append(names, name)
		if tagged, ok := Tag(image); ok {
			if _, locked := lock.Find(tagged); locked {
				bare[name] = Original{Image: tagged}
			}
		}
	})
	tagged, _ := Restore(pod, bare)
	return Apply(tagged, names, lock, missing)
}

// Apply returns the pod with the images of the named containers pinned, and a result for each image that is not
// locked, unless missing ones are ignored. The image auto, which an injector replaces, does not count as an image.
// The field of a result is a path below the pod template. It does not modify the pod, and returns it if no image
// has to be pinned. Pinning is idempotent.
func Apply(pod map[string]any, containers []string, lock *Lock, missing OnMissing) (map[string]any, result.Results) {
	spec, ok := pod["spec"].(map[string]any)
	if !ok {
		return pod, nil
	}
	var results result.Results
	changed := map[string]any{}
	for _, key := range containerLists {
		list, _ := spec[key].([]any)
		if out, rs := pinList(key, list, containers, lock, missing); out != nil || rs != nil {
			results = append(results, rs...)
			if out != nil {
				changed[key] = out
			}
		}
	}
	if len(changed) == 0 {
		return pod, results
	}
	return withKey(pod, "spec", withAll(spec, changed)), results
}

// containerLists are the fields of a pod's spec that hold containers.
var containerLists = []string{"initContainers", "containers", "ephemeralContainers"}

// pinList returns nil if the list does not change.
func pinList(key string, list []any, containers []string, lock *Lock, missing OnMissing) ([]any, result.Results) {
	var out []any
	var results result.Results
	for i, item := range list {
		c, _ := item.(map[string]any)
		name, _ := c["name"].(string)
		image, _ := c["image"].(string)
		if image == "" || image == autoImage || !slices.Contains(containers, name) {
			continue
		}
		pinned, ok := lock.Find(image)
		switch {
		case !ok && missing != Ignore && missing != "":
			results = append(results, notLocked(fmt.Sprintf("spec.%s[%d].image", key, i), name, image, missing))
		case ok && pinned != image:
			if out == nil {
				out = slices.Clone(list)
			}
			out[i] = withKey(c, "image", pinned)
		}
	}
	return out, results
}

// autoImage is the image of a container whose image Istio's injector sets.
const autoImage = "auto"

func notLocked(path, container, image string, missing OnMissing) result.Result {
	r := result.Result{
		Severity: result.Warning,
		Message:  fmt.Sprintf("image %s of the container %s is not locked to a digest; run prerig images pin", image, container),
		Field:    &result.Field{Path: path, CurrentValue: image},
		Tags:     map[string]string{result.TagCode: Code},
	}
	if missing == Fail {
		r.Severity = result.Error
	}
	return r
}

func digestOf(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

// fullName returns the name that container runtimes use: with the registry, with library/ for Docker's own, with the tag.
func fullName(image string) string {
	first, rest, ok := strings.Cut(image, "/")
	if !ok || !strings.ContainsAny(first, ".:") && first != "localhost" {
		first, rest = "docker.io", image
	}
	if first == "index.docker.io" || first == "registry-1.docker.io" {
		first = "docker.io"
	}
	if first == "docker.io" && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	if !strings.Contains(rest[strings.LastIndex(rest, "/")+1:], ":") {
		rest += ":latest"
	}
	return first + "/" + rest
}

func withKey(m map[string]any, key string, value any) map[string]any {
	return withAll(m, map[string]any{key: value})
}

func withAll(m, changes map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	for k, v := range changes {
		out[k] = v
	}
	return out
}
