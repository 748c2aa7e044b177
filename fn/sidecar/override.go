// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// fitOverlay is fitPatch for the containers of the pod that the sidecar's template changes.
func (s *Sidecar) fitOverlay(req Request, overlay map[string]any) error {
	for _, key := range []string{initContainersKey, containersKey} {
		have := listOf(req.Pod, key)
		for _, patch := range listOf(overlay, key) {
			i := indexOf(have, patch["name"])
			if i < 0 {
				continue
			}
			if err := s.fitPatch(req, key, have[i], patch); err != nil {
				return err
			}
		}
	}
	return nil
}

// fitPatch makes the meaning of a container patch explicit if merging would mix two things. Mounts merge by their
// path: one of another volume would replace the container's own and keep its subPath, so that is an error; a patch
// that intends it deletes the mount first. Variables merge by their name: value would end up beside valueFrom,
// which the API server rejects, so the patch removes the other one.
func (s *Sidecar) fitPatch(req Request, key string, c, patch map[string]any) error {
	if patch["$patch"] != nil {
		return nil
	}
	own := podmap.Maps(c["volumeMounts"])
	for _, mount := range mergedPatchElements(patch, "volumeMounts", "mountPath") {
		at, _ := mount["mountPath"].(string)
		i := slices.IndexFunc(own, func(m map[string]any) bool { return isSamePath(m["mountPath"], at) })
		if i < 0 || mount["name"] == nil || own[i]["name"] == mount["name"] {
			continue
		}
		return &podmap.FieldError{Field: mountField(req, key, c["name"], at),
			Err: fmt.Errorf("the container %v already mounts the volume %v at %v, where the sidecar %s mounts %v; choose another path for one of them",
				c["name"], own[i]["name"], own[i]["mountPath"], s.Name(), mount["name"])}
	}
	fitVariables(c, patch)
	return nil
}

// fitVariables has a patch set a variable's value or its source alone.
func fitVariables(c, patch map[string]any) {
	env, _ := c["env"].([]any)
	for _, variable := range mergedPatchElements(patch, "env", "name") {
		was := podmap.FindBy(env, "name", variable["name"])
		text, _ := variable["value"].(string)
		own, _ := was["value"].(string)
		_, sets := variable["value"]
		_, sources := variable["valueFrom"]
		switch {
		case was == nil:
		case text != "" && was["valueFrom"] != nil && !sources:
			variable["valueFrom"] = nil
		case variable["valueFrom"] != nil && own != "" && !sets:
			variable["value"] = nil
		}
	}
}

// mergedPatchElements returns the elements of a patch's list that are merged into the container's elements with the
// same key: not where instructions replace the list, or delete the element first.
func mergedPatchElements(patch map[string]any, key, mergeKey string) []map[string]any {
	list := podmap.Maps(patch[key])
	deleted := map[any]bool{}
	for _, e := range list {
		switch id, _ := e[mergeKey].(string); e["$patch"] {
		case "replace":
			return nil
		case "delete":
			deleted[id] = true
		}
	}
	return slices.DeleteFunc(list, func(e map[string]any) bool {
		id, _ := e[mergeKey].(string)
		return id == "" || deleted[id] || hasDirective(e)
	})
}

// hasDirective reports whether a part of a patch has instructions of its own.
func hasDirective(patch map[string]any) bool {
	for key := range patch {
		if strings.HasPrefix(key, string(podmap.DirectivePrefix)) {
			return true
		}
	}
	return false
}

// isSamePath reports whether a mount's path is the same directory as another one. Of two mounts at one directory,
// one hides the other.
func isSamePath(v any, other string) bool {
	at, ok := v.(string)
	return ok && path.Clean(at) == path.Clean(other)
}

// mountField returns the field of an original container's mount at a path, or that of the container if another
// sidecar's mount is at the path.
func mountField(req Request, key string, name any, at string) string {
	list := listOf(req.Original, key)
	i := indexOf(list, name)
	if i < 0 {
		return "spec"
	}
	field := []any{"spec", key, i}
	if j := slices.IndexFunc(podmap.Maps(list[i]["volumeMounts"]), func(m map[string]any) bool { return isSamePath(m["mountPath"], at) }); j >= 0 {
		field = append(field, "volumeMounts", j)
	}
	return workload.FieldString(field)
}
